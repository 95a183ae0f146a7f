// Network, storage and budget of a training stack on Google Cloud.
package main

import (
	"example.com/pulumi-trainstack/sdk/go/trainstack"
	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"
	"github.com/pulumi/pulumi/sdk/v3/go/pulumi/config"
)

func main() {
	pulumi.Run(func(ctx *pulumi.Context) error {
		project, region := config.Require(ctx, "gcp:project"), config.Require(ctx, "gcp:region")
		own := config.New(ctx, "")
		number := pulumi.String(own.Require("projectNumber"))

		network, err := trainstack.NewGcpNetwork(ctx, "training", &trainstack.GcpNetworkArgs{
			Project:              project,
			Region:               region,
			Cidr:                 "10.0.0.0/9",
			PodsPerNode:          32,
			FlowLogRetentionDays: 30,
		})
		if err != nil {
			return err
		}
		storage, err := trainstack.NewGcpStorage(ctx, "training", &trainstack.GcpStorageArgs{
			Project:                 project,
			ProjectNumber:           number,
			Region:                  region,
			NetworkName:             network.NetworkName,
			ServicesNetwork:         network.ServicesNetwork,
			CheckpointRetentionDays: 30,
			NoncurrentDays:          7,
			LogRetentionDays:        90,
			ForceDestroy:            pulumi.BoolRef(true),
			DeletionProtection:      pulumi.BoolRef(false),
		})
		if err != nil {
			return err
		}
		budget, err := trainstack.NewGcpBudget(ctx, "training", &trainstack.GcpBudgetArgs{
			ProjectNumber:   number,
			BillingAccount:  own.Require("billingAccount"),
			LabelKey:        "stack",
			LabelValue:      ctx.Stack(),
			MonthlyLimitUsd: 5000,
			AlertEmails:     []string{"ml-platform@example.com"},
		})
		if err != nil {
			return err
		}
		ctx.Export("network", network.NetworkId)
		ctx.Export("checkpoints", storage.CheckpointBucket)
		ctx.Export("budget", budget.BudgetName)
		return nil
	})
}
