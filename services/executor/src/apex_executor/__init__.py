"""The executor: owns devices; makes a planned step an act and the act an event."""
