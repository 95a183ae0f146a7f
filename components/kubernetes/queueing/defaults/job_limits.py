"""Deadlines and retries that the API server adds to jobs which declare none, as expressions in CEL."""

from agents.shared.kueue import DEADLINE_LABEL

# Time limit and retries of a job in an environment that refuses jobs without (rule MLS-K8S-06).
LONGEST_S = 7 * 24 * 3600
MOST_RETRIES = 3
# Of a Job that declares none (Kubernetes API Reference, JobSpec.backoffLimit); the API server writes it into
# Jobs, and not into the templates of other kinds, before admission.
_DEFAULT_RETRIES = 6

# Every Job template of an object: its path and its spec.
JOBS = """
  object.kind == 'CronJob' ? dyn([{
    'at': dyn('/spec/jobTemplate/spec'), 'job': dyn(object.spec.jobTemplate.spec)
  }])
  : object.kind == 'JobSet' ? dyn(object.spec.replicatedJobs.transformList(index, job, {
    'at': dyn('/spec/replicatedJobs/' + string(index) + '/template/spec'), 'job': dyn(job.template.spec)
  }))
  : dyn([{'at': dyn('/spec'), 'job': dyn(object.spec)}])
"""
# The metadata of the jobs of an object.
ABOUT = {
    "about": """
      object.kind == 'CronJob' ? dyn(object.spec.jobTemplate.?metadata.orValue(dyn({})))
      : dyn(object.metadata)
    """,
    "about_at": "object.kind == 'CronJob' ? '/spec/jobTemplate/metadata' : '/metadata'",
}
_EXEC_TIME = "kueue.x-k8s.io/max-exec-time-seconds"


def endless() -> str:
    """The paths of the jobs that declare no deadline."""
    ends = f"has(one.job.activeDeadlineSeconds) || '{_EXEC_TIME}' in object.metadata.?labels.orValue({{}})"
    return f"variables.jobs.filter(one, !({ends})).map(one, one.at)"


def deadlines() -> str:
    """A deadline of each job that declares none, and a label with it on the jobs."""
    label = DEADLINE_LABEL.replace("/", "~1")
    return f"""
      [variables.endless.filter(at, !(at in variables.before_endless))].filter(added, added.size() > 0)
        .map(added, added.map(at,
            JSONPatch{{op: 'add', path: at + '/activeDeadlineSeconds', value: {LONGEST_S}}})
          + (object.kind == 'CronJob' && !has(object.spec.jobTemplate.metadata)
            ? [JSONPatch{{op: 'add', path: '/spec/jobTemplate/metadata', value: {{}}}}] : [])
          + (variables.about.?labels.hasValue()
            ? [] : [JSONPatch{{op: 'add', path: variables.about_at + '/labels', value: {{}}}}])
          + [JSONPatch{{op: 'add', path: variables.about_at + '/labels/{label}', value: '{LONGEST_S}'}}]
        ).flatten()
    """


def patient() -> str:
    """The paths of the jobs that declare no number of retries.

    Of a Job, 6 may have been declared: the API server has written that default into it before.
    """
    many = f"object.kind == 'Job' ? one.job.?backoffLimit.orValue({_DEFAULT_RETRIES}) == {_DEFAULT_RETRIES}"
    many = f"{many} : !has(one.job.backoffLimit)"
    return f"variables.jobs.filter(one, !has(one.job.backoffLimitPerIndex) && ({many})).map(one, one.at)"


def retries() -> str:
    """Fewer retries than Kubernetes' default, where a job declares none."""
    return f"""
      variables.patient.filter(at, !(at in variables.before_patient)).map(at,
        JSONPatch{{op: 'add', path: at + '/backoffLimit', value: {MOST_RETRIES}}})
    """
