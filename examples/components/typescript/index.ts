// Network, storage and budget of a training stack on AWS.
import * as pulumi from "@pulumi/pulumi";
import * as trainstack from "@pulumi/trainstack";

const region = new pulumi.Config("aws").require("region");
const zones = [`${region}a`, `${region}b`];

const network = new trainstack.AwsNetwork("training", {
    region,
    cidr: "10.20.0.0/16",
    zones,
    natPerZone: false,
    flowLogRetentionDays: 30,
    interfaceEndpoints: ["ecr.api", "ecr.dkr"],
});

const storage = new trainstack.AwsStorage("training", {
    region,
    vpcId: network.vpcId,
    // A list of outputs: its length must be known, so it is not one output.
    subnetIds: zones.map((_, index) => network.privateSubnetIds[index]),
    clientSecurityGroupIds: [network.efaSecurityGroupId],
    checkpointRetentionDays: 30,
    noncurrentDays: 7,
    logRetentionDays: 90,
    forceDestroy: true,
    deletionProtection: false,
});

const budget = new trainstack.AwsBudget("training", {
    monthlyLimitUsd: 5000,
    alertEmails: ["ml-platform@example.com"],
    stackTagKey: "stack",
    stackTagValue: pulumi.getStack(),
});

export const vpcId = network.vpcId;
export const checkpoints = storage.checkpointBucket;
export const budgetName = budget.budgetName;
