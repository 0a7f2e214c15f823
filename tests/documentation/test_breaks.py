"""Places at which a browser may break the code on a page of the site."""

import pytest

from tests.documentation.site import on_post_page


@pytest.mark.parametrize(
    ("written", "shown"),
    [
        ("--registry", '<code class="whole">--registry</code>'),
        ("a=&quot;b&quot;", '<code class="whole">a=&quot;b&quot;</code>'),
        (
            "limitsWithAvailableNow",
            '<code class="name">limits<wbr>With<wbr>Available<wbr>Now</code>',
        ),
        (
            "kafka.ssl.endpoint.identification.algorithm",
            "<code>kafka.<wbr>ssl.<wbr>endpoint.<wbr>identification.<wbr>algorithm</code>",
        ),
        (
            "KAFKA_DATA_LOSS.PARTITIONS_DELETED",
            '<code class="name">KAFKA_<wbr>DATA_<wbr>LOSS.<wbr>PARTITIONS_<wbr>DELETED</code>',
        ),
    ],
)
def test_short_code_is_whole_and_long_code_is_broken_between_its_words(
    written: str, shown: str
) -> None:
    assert on_post_page(f"<p><code>{written}</code></p>") == f"<p>{shown}</p>"


def test_a_block_of_code_is_as_it_is_written() -> None:
    block = "<pre><span></span><code>spark-kafka-source schema orders</code></pre>"
    assert on_post_page(block) == block


def test_a_figure_in_a_table_stays_with_its_unit() -> None:
    page = "<p>202 ms</p><td>202 ms; 3.51 x</td>"
    assert on_post_page(page) == "<p>202 ms</p><td>202&nbsp;ms; 3.51&nbsp;x</td>"
