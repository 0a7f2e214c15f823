"""The commands `transactions list`, `describe`, `abort` and `finish`."""

import argparse
import time
from collections.abc import Iterable
from dataclasses import replace
from datetime import UTC, datetime

from spark_kafka_source.admin import HeldUpPartition, KafkaAdmin, TransactionDescription
from spark_kafka_source.admin.transactions import (
    ONGOING,
    OPEN,
    describe_transactions,
    list_transactions,
)
from spark_kafka_source.command_line.configuration import configuration
from spark_kafka_source.command_line.output import Output
from spark_kafka_source.errors import KafkaError
from spark_kafka_source.exactly_once.errors import LateAbortError
from spark_kafka_source.exactly_once.names import Names, checked_prefix
from spark_kafka_source.exactly_once.repair import (
    Finished,
    TaskTransaction,
    finish,
    last_outcomes,
    task_transactions,
)
from spark_kafka_source.exactly_once.settling import DOUBTFUL, LOST
from spark_kafka_source.producer import ProducerId
from spark_kafka_source.secret import printable

_LISTED = (
    *("transaction", "state", "producer", "epoch", "open", "left"),
    *("query", "batch", "task", "attempt", "note"),
)
_PARTITIONS = ("topic", "partition", "start", "stable", "end", "held_up", "note")
_WINNERS = ("transaction", "task", "attempt", "producer", "epoch", "outcome")
_DECIDED = "decided: start the query, which commits it, or 'finish' it"
_ABORTED = "It is aborted, and its producer is fenced"
_ABORTED_TASK = (
    "It is aborted, and not decided. Its query writes the rows again: start it, if it is stopped"
)
_ENDING = {
    "PrepareCommit": "committed; readers hear of it soon. If this stays, see 'describe'",
    "PrepareAbort": "aborted; readers hear of it soon. If this stays, see 'describe'",
}


def list_open(arguments: argparse.Namespace, output: Output) -> int:
    """Show open transactions, or transactions in given states. Note brokers that do not answer."""
    with KafkaAdmin(**configuration(arguments)) as admin:
        client = admin.client
        listed, failures = client.run(list_transactions(client, arguments.state or OPEN))
        matching = [each for each in listed if _is_wanted(each.transactional_id, arguments.prefix)]
        described = client.run(
            describe_transactions(client, [each.transactional_id for each in matching])
        )
        transactions = [each for each in described.values() if each is not None]
        tasks = task_transactions(client, transactions)
    for broker, error in failures.items():
        output.note(f"Broker {broker.node_id} ({broker.address}) does not list its own: {error}")
    rows = [_row(each, tasks.get(each.transactional_id)) for each in transactions]
    rows.sort(key=lambda row: (row["started_ms"], row["transaction"]))
    output.rows(rows, _LISTED, "No such transaction" if arguments.state else "None is open")
    if arguments.prefix and not arguments.state and (others := len(listed) - len(matching)):
        output.note(f"{others} of others are open: list without --prefix")
    return int(bool(failures))


def _is_wanted(transactional_id: str, prefix: str | None) -> bool:
    return prefix is None or transactional_id.startswith(f"{prefix}.")


def _row(described: TransactionDescription, task: TaskTransaction | None) -> dict[str, object]:
    now_ms = time.time_ns() // 1_000_000
    is_timed = described.is_open and described.started_at_ms >= 0
    open_ms = now_ms - described.started_at_ms if is_timed else None
    left_ms = described.remaining_ms(now_ms) if is_timed and described.state == ONGOING else None
    return {
        "transaction": described.transactional_id,
        "state": described.state,
        "producer": described.producer.producer_id,
        "epoch": described.producer.epoch,
        "started_ms": described.started_at_ms,
        "started": _time(described.started_at_ms) if described.started_at_ms >= 0 else None,
        "open": _span(open_ms),
        "open_ms": open_ms,
        "timeout_ms": described.timeout_ms,
        "left": _span(left_ms),
        "left_ms": left_ms,
        "coordinator": described.coordinator_id,
        "partitions": [partition._asdict() for partition in described.topic_partitions],
        "query": task.query_id if task else None,
        "run": task.run_id if task else None,
        "batch": task.batch_id if task else None,
        "last_batch": task.last.batch.batch_id if task and task.last else None,
        "task": task.task_id.task if task else None,
        "attempt": task.task_id.attempt if task else None,
        "decided": task.is_decided if task else None,
        "note": _note(described, task),
    }


def _note(described: TransactionDescription, task: TaskTransaction | None) -> str | None:
    if task is None or described.state in _ENDING:
        return _ENDING.get(described.state)
    if task.error is not None:
        return f"decisions cannot be read: {task.error}"
    if task.is_decided:
        return _DECIDED if described.is_open else "decided"
    return "not decided" if described.is_open else None


def describe(arguments: argparse.Namespace, output: Output) -> int:
    """Describe one transaction after the other. A missing one does not hide the others."""
    failures = 0
    with KafkaAdmin(**configuration(arguments)) as admin:
        for place, transactional_id in enumerate(arguments.transactions):
            try:
                described = admin.describe_transaction(transactional_id)
            except KafkaError as error:
                output.note(str(error))
                failures += 1
                continue
            tasks = task_transactions(admin.client, [described])
            row = _row(described, tasks.get(transactional_id))
            row["partitions"] = _partition_rows(admin, described, output)
            if output.as_json:
                output.document(row)
            else:
                _show(output, row, is_first=not place)
    return min(failures, 1)


def _partition_rows(
    admin: KafkaAdmin, transaction: TransactionDescription, output: Output
) -> list[dict[str, object]]:
    """Return the transaction's partitions, with the offsets that readers wait for, if known."""
    partitions = [each for each in transaction.topic_partitions if not each.topic.startswith("__")]
    try:
        return [_partition_row(each, transaction.producer) for each in admin.held_up(partitions)]
    except KafkaError as error:
        output.note(f"How long readers wait is not known: {error}")
        return [each._asdict() for each in partitions]


def _partition_row(held_up: HeldUpPartition, producer: ProducerId) -> dict[str, object]:
    own = [each for each in held_up.writers if each.producer.producer_id == producer.producer_id]
    start = own[0].start_offset if own else None
    is_first = start is not None and start == held_up.last_stable_offset
    return {
        **held_up.topic_partition._asdict(),
        "start": start,
        "stable": held_up.last_stable_offset,
        "end": held_up.end_offset,
        "held_up": held_up.offsets_held_up,
        "note": "readers wait for it" if is_first else None,
    }


def _show(output: Output, row: dict[str, object], *, is_first: bool) -> None:
    if not is_first:
        output.line("")
    names = (
        *("transaction", "state", "producer", "epoch", "coordinator", "started", "open", "left"),
        *("query", "run", "batch", "last_batch", "task", "attempt", "note"),
    )
    for name in names:
        if row[name] is not None:
            output.line(f"{name.replace('_', ' ') + ':':13}{printable(str(row[name]))}")
    partitions = row["partitions"]
    if isinstance(partitions, list) and partitions:
        output.line("")
        output.rows(partitions, [name for name in _PARTITIONS if name in partitions[0]])


def abort(arguments: argparse.Namespace, output: Output) -> int:
    """Show the transaction. Abort it only with `--execute`."""
    name, producer = arguments.transaction, ProducerId(arguments.producer_id, arguments.epoch)
    late = None
    with KafkaAdmin(**configuration(arguments)) as admin:
        described = admin.describe_transaction(name)
        task = task_transactions(admin.client, [described]).get(name)
        if arguments.execute:
            try:
                admin.abort_transaction(name, *producer)
            except LateAbortError as error:
                late = error
            described = replace(described, state="PrepareAbort")
    row = _row(described, task) | {"aborted": arguments.execute}
    output.rows([row if late is None else row | _decided_meanwhile(late)], _LISTED)
    if late is not None:
        raise late
    if arguments.execute:
        is_of_query = task is not None and task.last is not None
        output.note(_ABORTED_TASK if is_of_query else _ABORTED)
        return 0
    if described.producer != producer:
        other = described.producer
        output.note(f"Its producer is {other.producer_id} by now, with epoch {other.epoch}")
        return 1
    output.note("Nothing was aborted: this was a dry run; add --execute")
    return 0


def _decided_meanwhile(late: LateAbortError) -> dict[str, object]:
    """Return the fields of a row that a decision has changed meanwhile, or may have."""
    if late.batch is None:
        return {"decided": None, "note": "aborted; it may be decided"}
    query_id, run_id, batch_id = late.batch.query_id, late.batch.run_id, late.batch.batch_id
    note = "aborted, and decided meanwhile: start the query"
    return {"query": query_id, "run": run_id, "batch": batch_id, "decided": True, "note": note}


def finish_decided(arguments: argparse.Namespace, output: Output) -> int:
    """Show the state of the last decisions under a prefix. Finish them only with `--execute`."""
    names = Names(checked_prefix(arguments.prefix))
    with KafkaAdmin(**configuration(arguments)) as admin:
        if arguments.execute:
            decisions = finish(admin.client, names, accept_loss=arguments.accept_loss)
        else:
            decisions = last_outcomes(admin.client, names)
    for each in decisions:
        output.note(f"The last decision under {names.prefix!r} is {each.decision}")
    rows = [row for each in decisions for row in _winner_rows(each)]
    output.rows(rows, _WINNERS, "It has no transactions")
    lost = [lost for each in decisions for lost in each.of(*LOST, *DOUBTFUL)]
    if not arguments.execute:
        output.note("Nothing was changed: this was a dry run; add --execute")
    elif lost and arguments.accept_loss:
        output.note("Those that are not committed are no longer part of it: start the query")
    return int(bool(lost) and not arguments.accept_loss)


def _winner_rows(finished: Finished) -> Iterable[dict[str, object]]:
    for transaction, kind in finished.outcomes.items():
        name, _, numbers = transaction.transactional_id.rpartition(".")
        yield {
            "transaction": transaction.transactional_id,
            "task": int(name.rpartition(".")[2]),
            "attempt": int(numbers),
            "producer": transaction.producer.producer_id,
            "epoch": transaction.producer.epoch,
            "started": _time(transaction.started_at_ms),
            "outcome": kind.name.lower(),
            "batch": finished.decision.batch.batch_id,
            "write": finished.decision.write,
        }


def _time(time_ms: int) -> str | None:
    try:
        time = datetime.fromtimestamp(time_ms / 1000, UTC)
    except (OverflowError, ValueError, OSError):
        return None
    return time.isoformat(timespec="seconds").replace("+00:00", "Z")


def _span(span_ms: int | None) -> str | None:
    """Return a span as `2h03m`, `4m05s` or `6s`, with a minus for a span in the past."""
    if span_ms is None:
        return None
    sign, seconds = "-" if span_ms < 0 else "", abs(span_ms) // 1000
    minutes, seconds = divmod(seconds, 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{sign}{hours}h{minutes:02}m"
    return f"{sign}{minutes}m{seconds:02}s" if minutes else f"{sign}{seconds}s"
