// Network, parallel file system and budget of a training stack on Google Cloud.
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
			Cidr:                 "10.20.0.0/16",
			PodsPerNode:          32,
			FlowLogRetentionDays: 30,
			Lustre:               pulumi.BoolRef(true),
		})
		if err != nil {
			return err
		}
		lustre, err := trainstack.NewGcpLustre(ctx, "training", &trainstack.GcpLustreArgs{
			Zone:                region + "-a",
			NetworkId:           network.ServicesNetwork,
			CapacityGib:         18000,
			ThroughputMbSPerTib: 500,
			Protect:             pulumi.BoolRef(false),
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
		ctx.Export("lustre", lustre.Address)
		ctx.Export("budget", budget.BudgetName)
		return nil
	})
}
