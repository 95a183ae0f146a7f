// The CustomResourceDefinitions of Kueue, which the generated queue objects are tested against: they lie in
// the module, under config/components/crd/bases. Nothing is built here.
module trainstack.local/tools/kueue

go 1.26.0

require sigs.k8s.io/kueue v0.19.2
