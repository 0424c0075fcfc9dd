"""The decision-log: every decision in Postgres, and the timeline queries. No one else needs the database."""
