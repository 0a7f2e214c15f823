"""Topics with tiered storage (KIP-405), of a real broker with Kafka's own `LocalTieredStorage`."""
