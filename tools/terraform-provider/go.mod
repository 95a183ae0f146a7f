module example.com/provider_facts

go 1.26
