"""What writes: columns checked on the driver, record batches sent by the executors."""
