from __future__ import annotations

from datetime import UTC, datetime

import pytest

from beetle.contracts.common import Conversation
from beetle.contracts.errors import BeetleError
from beetle.contracts.transcript import MemoryTranscriptCommitRequest
from beetle.contracts.turns import CanonicalTurnDelta, MessageDelta
from tests.building import CONVERSATION, contents, lifecycle, message, replay, talk, turn
from tests.conformance.doors import Door


def test_a_commit_numbers_its_turns_and_keeps_the_order_of_turns_and_messages(door: Door) -> None:
    first = turn("t1", message("a", "one"), message("b", "two", role="assistant"))
    report = door.call("transcript.commit", talk(first, turn("t2", "three")))
    assert (report["committed"], report["unchanged"]) == (2, 0)
    assert report["turns"] == [
        {"turn_id": "t1", "sequence": 1, "outcome": "committed"},
        {"turn_id": "t2", "sequence": 2, "outcome": "committed"},
    ]
    assert report["lifecycle"]["operation"] == "transcript.commit"
    assert report["lifecycle"]["changed"] is True
    assert report["lifecycle"]["event_id"] >= 1
    shown = replay(door)
    assert [each["sequence"] for each in shown["turns"]] == [1, 2]
    assert [m["message_id"] for m in shown["turns"][0]["messages"]] == ["a", "b"]
    assert [m["role"] for m in shown["turns"][0]["messages"]] == ["user", "assistant"]
    assert contents(shown) == ["one", "two", "three"]


def test_a_later_commit_goes_on_behind_the_last_sequence_whatever_its_time(door: Door) -> None:
    door.prepare("transcript.commit", talk(turn("t1", "one", at="2024-05-02T00:00:00Z")))
    report = door.call("transcript.commit", talk(turn("t0", "zero", at="2020-01-01T00:00:00Z")))
    assert report["turns"] == [{"turn_id": "t0", "sequence": 2, "outcome": "committed"}]
    assert [each["turn_id"] for each in replay(door)["turns"]] == ["t1", "t0"]


def test_the_same_turn_again_is_unchanged_and_writes_no_event(door: Door) -> None:
    request = talk(turn("t1", "one"), turn("t2", "two"))
    door.prepare("transcript.commit", request)
    again = door.call("transcript.commit", request)
    assert (again["committed"], again["unchanged"]) == (0, 2)
    assert [each["outcome"] for each in again["turns"]] == ["unchanged", "unchanged"]
    assert [each["sequence"] for each in again["turns"]] == [1, 2]
    assert again["lifecycle"]["changed"] is False
    assert again["lifecycle"]["event_id"] is None


def test_known_and_new_turns_may_stand_in_one_commit(door: Door) -> None:
    door.prepare("transcript.commit", talk(turn("t1", "one")))
    report = door.call("transcript.commit", talk(turn("t1", "one"), turn("t2", "two")))
    assert [(each["outcome"], each["sequence"]) for each in report["turns"]] == [("unchanged", 1), ("committed", 2)]


@pytest.mark.parametrize(
    "changed",
    [
        {"at": "2024-05-01T10:00:01Z"},
        {"messages": [message("t1.0", "another")]},
        {"messages": [message("t1.0", "one", role="assistant")]},
        {"messages": [message("t1.0", "one", visibility="private")]},
        {"messages": [message("t1.0", "one", at="2024-05-01T10:00:09Z")]},
        {"messages": [message("t1.0", "one", actor={"speaker": "Ana"})]},
        {"messages": [message("other-id", "one")]},
        {"messages": [message("t1.0", "one"), message("t1.1", "more")]},
        {"host_refs": [{"kind": "ticket", "ref_id": "7"}]},
    ],
    ids=["at", "content", "role", "visibility", "message-at", "actor", "message-id", "one-more-message", "host-ref"],
)
def test_a_known_turn_with_other_content_is_a_conflict(door: Door, changed: dict) -> None:
    door.prepare("transcript.commit", talk(turn("t1", "one")))
    door.refused("conflict", "transcript.commit", talk({**turn("t1", "one"), **changed}))
    assert contents(replay(door)) == ["one"]


def test_attrs_and_a_repeated_default_time_do_not_count_in_the_digest(door: Door) -> None:
    attrs = [{"key": "mood", "value": "calm"}]
    door.prepare("transcript.commit", talk(turn("t1", "one", attrs=attrs)))
    again = turn("t1", message("t1.0", "one", at="2024-05-01T12:00:00+02:00"), at="2024-05-01T10:00:00.000Z")
    report = door.call("transcript.commit", talk({**again, "attrs": [{"key": "mood", "value": "other"}]}))
    assert report["unchanged"] == 1
    assert [a["value"] for a in replay(door)["turns"][0]["attrs"]] == ["calm"]


def test_a_message_takes_its_turn_s_time_where_it_gives_none(door: Door) -> None:
    spoken = turn("t1", message("a", "one"), message("b", "two", at="2024-05-01T10:00:07+00:00"))
    door.prepare("transcript.commit", talk(spoken))
    times = [m["at"] for m in replay(door)["turns"][0]["messages"]]
    assert times == ["2024-05-01T10:00:00Z", "2024-05-01T10:00:07Z"]


def test_a_raw_deleted_turn_does_not_come_back_by_the_same_commit(door: Door) -> None:
    request = talk(turn("t1", "a secret of the past"))
    door.prepare("transcript.commit", request)
    lifecycle(door, "delete_raw", "t1")
    report = door.call("transcript.commit", request)
    assert (report["committed"], report["unchanged"]) == (0, 1)
    assert contents(replay(door)) == [None]
    # Whoever asks sees nothing of it, and is to learn nothing of it by a guess.
    assert door.call("transcript.commit", talk(turn("t1", "something else")))["turns"] == report["turns"]
    assert contents(replay(door)) == [None]


def test_a_message_id_is_taken_once_within_its_conversation(door: Door) -> None:
    door.prepare("transcript.commit", talk(turn("t1", message("m", "one"))))
    door.refused("conflict", "transcript.commit", talk(turn("t2", message("m", "two"))))
    door.refused("invalid_request", "transcript.commit", talk(turn("t3", message("n", "x"), message("n", "y"))))
    elsewhere = {"channel_id": "local", "conversation_id": "another"}
    report = door.call("transcript.commit", talk(turn("t2", message("m", "two")), conversation=elsewhere))
    assert report["committed"] == 1


@pytest.mark.parametrize("place", [0, 1, 2])
def test_a_commit_writes_all_of_its_turns_or_none(door: Door, place: int) -> None:
    door.prepare("transcript.commit", talk(turn("known", "as it is")))
    turns = [turn("t1", "one"), turn("t2", "two")]
    turns.insert(place, turn("known", "as it is not"))
    door.refused("conflict", "transcript.commit", talk(*turns))
    assert [each["turn_id"] for each in replay(door)["turns"]] == ["known"]
    report = door.call("transcript.commit", talk(turn("t9", "nine")))
    assert report["turns"][0]["sequence"] == 2


def test_the_same_turn_twice_in_one_commit_is_written_once(door: Door) -> None:
    report = door.call("transcript.commit", talk(turn("t1", "one"), turn("t1", "one")))
    assert [each["outcome"] for each in report["turns"]] == ["committed", "unchanged"]
    door.refused("conflict", "transcript.commit", talk(turn("t2", "one way"), turn("t2", "or another")))
    assert len(replay(door)["turns"]) == 1


def test_turn_ids_belong_to_their_conversation_and_channel(door: Door) -> None:
    for where in (CONVERSATION, {**CONVERSATION, "channel_id": "mail"}, {**CONVERSATION, "conversation_id": "other"}):
        report = door.call("transcript.commit", talk(turn("t1", f"in {where}"), conversation=where))
        assert report["turns"] == [{"turn_id": "t1", "sequence": 1, "outcome": "committed"}]
    assert contents(replay(door)) == [f"in {CONVERSATION}"]


def test_content_comes_back_character_by_character(door: Door) -> None:
    text = (
        'NUL\x00 tab\t newline\r\n \u202eright-to-left\u202c 日本語 \U0001f41e e\u0301 ﬁ <b>&amp;</b> \\x "quoted" '
        + "x" * 3000
    )
    door.call("transcript.commit", talk(turn("t1", message("m", text), message("empty", ""))))
    assert contents(replay(door)) == [text, ""]
    assert [m["length"] for m in replay(door)["turns"][0]["messages"]] == [len(text), 0]


@pytest.mark.parametrize("identifier", ["a/b", "ünï-ćode", "x" * 256, " lead", "%2F", ":", "."])
def test_an_id_is_kept_as_given(door: Door, identifier: str) -> None:
    where = {"channel_id": identifier, "conversation_id": identifier}
    door.prepare("transcript.commit", talk(turn(identifier, message(identifier, "kept pelican")), conversation=where))
    shown = replay(door, conversation=where)
    assert shown["turns"][0]["turn_id"] == identifier
    assert shown["turns"][0]["messages"][0]["message_id"] == identifier
    hit = door.call("memory.recall", {"query": "pelican"})["hits"][0]
    assert (hit["turn_id"], hit["message_id"]) == (identifier, identifier)
    assert hit["conversation"] == where


def test_the_whole_of_an_actor_is_kept(door: Door) -> None:
    actor = {
        "speaker": "Ana", "subject_id": "human_user", "actor_subject_id": "agent:main",
        "mounted_subject_id": "agent:other", "agent_id": "agent-main", "trigger": "webhook",
    }  # fmt: skip
    door.prepare("transcript.commit", talk(turn("t1", message("m", "hello", actor=actor))))
    assert replay(door)["turns"][0]["messages"][0]["actor"] == actor


def test_a_time_may_lie_in_the_future_or_far_in_the_past(door: Door) -> None:
    times = {"t1": "0001-01-01T00:00:00Z", "t2": "9999-12-31T23:59:59.999999Z", "t3": "1969-12-31T23:59:59.5Z"}
    door.prepare("transcript.commit", talk(*(turn(key, f"at {at}", at=at) for key, at in times.items())))
    assert {each["turn_id"]: each["at"] for each in replay(door)["turns"]} == times


@pytest.mark.parametrize("at", ["0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-14:00"])
def test_a_time_that_no_answer_could_show_is_refused(door: Door, at: str) -> None:
    door.refused("invalid_request", "transcript.commit", talk(turn("t1", "x", at=at)))
    door.refused("invalid_request", "transcript.commit", talk(turn("t1", message("m", "x", at=at))))
    door.refused("invalid_request", "memory.recall", {"query": "x", "since": at})


def test_a_typed_request_is_the_same_as_its_fields(door: Door) -> None:
    """Structs hold times as datetimes, and a constructor validates nothing: the receiving end does."""
    methods = door.methods()
    said = MessageDelta(message_id="m", role="user", content="typed", at=datetime(2024, 5, 1, 12, tzinfo=UTC))
    delta = CanonicalTurnDelta(turn_id="t1", at=datetime(2024, 5, 1, 12, tzinfo=UTC), messages=(said,))
    where = Conversation(conversation_id="talk")
    report = methods.commit_transcript(MemoryTranscriptCommitRequest(conversation=where, turns=(delta,)))
    assert (report.committed, report.turns[0].sequence) == (1, 1)
    fields = talk(turn("t1", message("m", "typed"), at="2024-05-01T14:00:00+02:00"))
    assert methods.commit_transcript(**fields).unchanged == 1
    shown = methods.replay_transcript(conversation=where, view="host_ui")
    assert shown.turns[0].messages[0].content == "typed"
    assert methods.recall(query="typed", since=datetime(2024, 5, 1, tzinfo=UTC)).hits
    wrong = MemoryTranscriptCommitRequest(conversation=where, turns=())
    with pytest.raises(BeetleError) as caught:
        methods.commit_transcript(wrong)
    assert caught.value.details["path"] == "$.args.turns"


def test_an_attr_s_target_must_be_a_message_of_its_turn(door: Door) -> None:
    attr = {"key": "k", "value": "v", "target": {"message_id": "nobody"}}
    door.refused("invalid_request", "transcript.commit", talk(turn("t1", "one", attrs=[attr])))
    door.refused("not_found", "transcript.replay", {"conversation": CONVERSATION, "view": "host_ui"})
