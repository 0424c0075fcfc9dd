"""What every service shares of NATS: connection, provisioning, the task log, the consume loop, traces and settings."""
