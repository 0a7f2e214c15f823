"""`sasl.jaas.config` has the same meaning as in Java, and stays secret."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spark_kafka_source.errors import ConfigurationError
from spark_kafka_source.net.sasl import jaas
from spark_kafka_source.net.sasl.jaas import parse_jaas
from spark_kafka_source.secret import Secret

PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule"
CANARY = "hunter2-canary"


def options(text: str) -> dict[str, str]:
    return {name: value.reveal() for name, value in parse_jaas(Secret(text)).options.items()}


def test_as_users_have_it() -> None:
    entry = parse_jaas(
        Secret(
            f"kafkashaded.{PLAIN} required username='a'\n  password=\"b;c\\\"d = 'e'\" x=true ; \n"
        )
    )
    assert entry.login_module == PLAIN
    assert entry.text("username") == "a"
    assert entry.text("password") == "b;c\"d = 'e'"
    assert entry.boolean("x")
    assert entry.text("y") is None
    assert not entry.boolean("y")


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        (r'"a\\b"', r"a\b"),
        (r'"a\tb\n"', "a\tb\n"),
        (r'"\101\7\0701\400"', "A\7\70" + "1 0"),
        (r'"\d\'"', "d'"),
        ('""', ""),
        ("'say \"x\"'", 'say "x"'),
        ("bare-word_1.$x", "bare-word_1.$x"),
        ('"schlüssel"', "schlüssel"),
    ],
)
def test_quotes_and_escapes(written: str, meant: str) -> None:
    assert options(f"{PLAIN} Required password={written};") == {"password": meant}


def test_comments_are_skipped_and_names_may_be_quoted() -> None:
    config = f'/* one */ {PLAIN} required "a"=b // c="d"\n /* e=f; */ g="/* h */"; / the end'
    assert options(config) == {"a": "b", "g": "/* h */"}


@pytest.mark.parametrize("text", ["0=a", "a=0", "-a=b", "a=.5", "a=b@C", "a=#b", "!a=b"])
def test_what_is_no_word_for_java_is_none_here(text: str) -> None:
    with pytest.raises(ConfigurationError, match="should stand"):
        options(f"{PLAIN} required {text};")


@given(st.text(st.characters(exclude_characters="\r\n", exclude_categories=["Cs"])))
def test_whatever_is_quoted_comes_back(text: str) -> None:
    quoted = text.replace("\\", "\\\\").replace('"', '\\"')
    assert options(f'{PLAIN} required a="{quoted}" b=c;') == {"a": text, "b": "c"}


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("", "ends where a login module's class should stand"),
        (CANARY, "ends where 'required'"),
        (f"{PLAIN} {CANARY} username=a;", "has something else at character 57"),
        (f'{PLAIN} required password="{CANARY}"', "ends where an option's name, or ';'"),
        (f'{PLAIN} required password="{CANARY};', "a quote without its end"),
        (f'{PLAIN} required password="{CANARY}\n";', "a quote without its end"),
        (f'{PLAIN} required password "{CANARY}";', "'=' after an option's name"),
        (f"{PLAIN} required password={CANARY}=;", "an option's name"),
        (f'{PLAIN} required password="a"b"{CANARY}";', "'=' after an option's name"),
        (f"{PLAIN} required password=;", "an option's value"),
        (f"{PLAIN} required {CANARY}", "'=' after an option's name"),
        (f'{PLAIN} required a="{CANARY}" a="{CANARY}";', "an option twice, at character 85"),
        (f'{PLAIN} required a="{CANARY}"; {PLAIN} required;', "more than one login module"),
        (CANARY * 10_000, "has 140000 characters"),
    ],
)
def test_faults_are_placed_and_not_shown(text: str, fault: str) -> None:
    with pytest.raises(ConfigurationError, match=r"^Option 'kafka.sasl.jaas.config'") as refused:
        parse_jaas(Secret(text))
    assert fault in str(refused.value)
    assert CANARY not in str(refused.value)


@given(st.text() | st.text("\"'\\=; ab").map(lambda text: f"{PLAIN} required {text}"))
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        parse_jaas(Secret(text))
    except ConfigurationError as refused:
        assert refused.option == "kafka.sasl.jaas.config"


def test_a_repr_shows_no_value() -> None:
    text = f'{PLAIN} required a="{CANARY}" b={CANARY};'
    assert CANARY not in repr(parse_jaas(Secret(text)))
    assert CANARY not in repr(list(jaas._tokens(text)))
