"""`python -m tools.java_clients`: write the tables of Kafka's Java clients into their pages."""

from tools.java_clients.consumer import CONSUMER
from tools.java_clients.extension_points import MARKS, PAGE
from tools.java_clients.extension_points import render as render_extensions
from tools.java_clients.producer import PRODUCER
from tools.java_clients.tables import render

if __name__ == "__main__":
    for client in (CONSUMER, PRODUCER):
        client.marks.write(client.page, render(client))
    MARKS.write(PAGE, render_extensions())
