"""What reads: offsets planned on the driver, ranges of them read on the executors."""
