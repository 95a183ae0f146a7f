"""What rows cannot say, service by service: `HOOKS` of each module maps a type (without `gcp:`) to them."""
