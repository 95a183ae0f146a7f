"""What rows cannot say, service by service: `HOOKS` of each module maps a type (without `aws:`) to them."""
