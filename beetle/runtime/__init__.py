"""What happens for one operation: dispatcher, handlers, views, profiles, capabilities, budgets."""
