"""Scheduling: requests over time through an engine's iterations. Time is an integer number of picoseconds."""
