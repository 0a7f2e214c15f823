"""`python -m tests.java_clients`: write the tables of Kafka's Java clients into their pages."""

from tests.java_clients.consumer import CONSUMER
from tests.java_clients.extension_points import MARKS, PAGE
from tests.java_clients.extension_points import render as render_extensions
from tests.java_clients.producer import PRODUCER
from tests.java_clients.tables import render

for client in (CONSUMER, PRODUCER):
    client.marks.write(client.page, render(client))
MARKS.write(PAGE, render_extensions())
