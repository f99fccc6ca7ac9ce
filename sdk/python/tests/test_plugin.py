"""Native tests of the SDK: kinds, settings, answers, and messages about errors."""

import json
import unittest
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Literal

from opilio_plugin import (
    ActionResult,
    Candidate,
    Click,
    Document,
    Evaluate,
    Extraction,
    Extractor,
    Filter,
    Fragment,
    Link,
    Observer,
    PageBehavior,
    Pause,
    Precedence,
    Ruling,
    Screenshot,
    Scroll,
    ScrollBy,
    ScrollToElement,
    SettingsFault,
    SettingsFaults,
    Span,
    StepPlan,
    StripProblem,
    TextAt,
    Wait,
    WaitEvaluator,
    WaitForNetwork,
    WaitForSelector,
    setting,
    table,
)
from opilio_plugin import DigestStripper, PastVisit
from opilio_plugin import wire
from opilio_plugin.component import Component, Refused
from opilio_plugin.double import CandidatesHandle, DocumentHandle, Json, PageHandle, QueueHandle, VisitHandle
from opilio_plugin.settings import parse_settings, schema_of
from opilio_plugin.views import READ_BYTES_MAX
from opilio_plugin.testing import candidates, configured, document, host, page, visit


def extractor(work):
    class X(Extractor):
        name = "x"
        summary = "X."

        def extract(self, document: Document):
            return work()

    return X


def ask(plugin, call, *arguments, settings="{}"):
    """Configures the plugin and returns the answer to a call as JSON."""
    host()
    wire.connect(Json())
    component = Component([plugin], "2.0.0")
    component.configure(plugin.name, settings)
    return getattr(component, call)(*arguments)


class Descriptions(unittest.TestCase):
    def test_a_plugin_is_described_by_the_classes_it_extends(self):
        class X(Filter, Observer):
            name = "x"
            summary = "X."

            def observe(self, memory, events):
                """Nothing."""

        described = X.describe("1.0.0")
        self.assertEqual((described.kinds, described.version), (["filter", "observer"], "1.0.0"))

    def test_incomplete_classes_are_refused(self):
        class Unfinished(Extractor):
            name = "x"
            summary = "X."

        class Nameless(Filter):
            pass

        for plugin, message in [(Unfinished, "Unfinished does not define extract"), (Nameless, "Nameless needs a name")]:
            with self.assertRaisesRegex(TypeError, message):
                plugin.describe("1.0.0")


class Settings(unittest.TestCase):
    @dataclass
    class Example:
        @dataclass
        class Inner:
            deep_one: bool = False

        most: int = setting(description="How many.", level="warning", minimum=1)
        word: str = setting("x", "A word.", overridable=True, pattern="^[a-z]+$")
        words: list[str] = setting(["a"])
        by_name: dict[str, float] = setting({}, expert=True)
        how: Literal["fast", "well"] = "well"
        nothing: str | None = None
        inner: Inner = setting(None)

    def test_a_dataclass_makes_a_strict_schema(self):
        self.assertEqual(
            schema_of(self.Example),
            {
                "type": "object",
                "additionalProperties": False,
                "required": ["most"],
                "properties": {
                    "most": {"type": "integer", "minimum": 1, "description": "How many.", "x-opilio-level": "warning"},
                    "word": {
                        "type": "string",
                        "pattern": "^[a-z]+$",
                        "description": "A word.",
                        "x-opilio-overridable": True,
                        "default": "x",
                    },
                    "words": {"type": "array", "items": {"type": "string"}, "default": ["a"]},
                    "by-name": {
                        "type": "object",
                        "additionalProperties": {"type": "number"},
                        "x-opilio-expert": True,
                        "default": {},
                    },
                    "how": {"enum": ["fast", "well"], "default": "well"},
                    "nothing": {"type": "string"},
                    "inner": {
                        "type": "object",
                        "additionalProperties": False,
                        "properties": {"deep-one": {"type": "boolean", "default": False}},
                    },
                },
            },
        )

    def test_missing_settings_have_their_defaults(self):
        made = parse_settings(self.Example, '{"most": 3, "by-name": {"a": 1}, "inner": {"deep-one": true}}')
        self.assertEqual((made.most, made.word, made.words, made.by_name), (3, "x", ["a"], {"a": 1.0}))
        self.assertTrue(made.inner.deep_one)

    def test_invalid_settings_are_reported_with_their_pointer(self):
        cases = {
            "{}": "/most: is required",
            '{"most": "3"}': "/most: not of type integer",
            '{"most": true}': "/most: not of type integer",
            '{"most": 1, "mots": 2}': "/mots: unknown setting; known settings: most, word,",
            '{"most": 1, "words": ["a", 2]}': "/words/1: not of type string",
            '{"most": 1, "how": "badly"}': "/how: not one of fast, well",
            '{"most": 1, "inner": {"deeper": 1}}': "/inner/deeper: unknown setting; known settings: deep-one",
        }
        for given, message in cases.items():
            with self.subTest(given), self.assertRaisesRegex(SettingsFault, message):
                parse_settings(self.Example, given)

    def test_a_setting_of_a_type_without_a_schema_is_refused(self):
        @dataclass
        class Odd:
            when: datetime = setting(None)

        with self.assertRaisesRegex(TypeError, "Odd.when has type .*a setting must be str, int"):
            schema_of(Odd)

    def test_settings_faults_are_returned_and_other_exceptions_are_logged(self):
        def refusing(problem):
            class X(Extractor):
                name = "x"
                summary = "X."

                def __init__(self, settings):
                    raise problem

                def extract(self, document):
                    """Nothing."""

            return X

        faults = [SettingsFault("/a", "is empty"), SettingsFault("/b/0", "is too long")]
        with self.assertRaises(Refused) as refused:
            ask(refusing(SettingsFaults.of(faults)), "describe")
        self.assertEqual(
            refused.exception.value,
            [{"pointer": "/a", "problem": "is empty"}, {"pointer": "/b/0", "problem": "is too long"}],
        )
        made = host()
        with self.assertRaises(KeyError):
            Component([refusing(KeyError("nothing"))], "2.0.0").configure("x", "{}")
        self.assertRegex(made.logged[0][1], r"^x 2\.0\.0, configure: KeyError: 'nothing'\n    at __init__ \(test_plugin\.py:\d+\)")


class Answers(unittest.TestCase):
    def check(self, answer, message):
        with self.subTest(message), self.assertRaises(wire.WrongType) as wrong:
            ask(extractor(lambda: answer), "extract", [DocumentHandle({})])
        self.assertEqual(str(wrong.exception), message)

    def test_wrong_types_are_reported_with_their_place(self):
        self.check([Link(3)], "links[0].uri must be a str, not int 3")
        self.check([Link("a"), "b"], "links[1] must be a Link, not str 'b'")
        self.check([Link("a", base=b"b")], "links[0].base must be a str, not bytes b'b'")
        self.check(Extraction(links="a"), "links must be a list, not str 'a'")
        self.check(Extraction(finished=1), "finished must be True or False, not int 1")
        self.check(
            Extraction(fragments=[Fragment("text/css", TextAt(Span(-1, 2)))]),
            "fragments[0].content.offset must be a non-negative int, not int -1",
        )
        self.check(
            [Link("a", hop=1)],
            "links[0].hop must be one of link, embed, speculative, redirect, prerequisite, inferred, manifest, submit, not int 1",
        )

    def test_hops_of_later_contracts_pass_through(self):
        [answer] = ask(extractor(lambda: (Link(hop, hop) for hop in ("embed", "teleport"))), "extract", [DocumentHandle({})])
        self.assertEqual([link["hop"] for link in answer["links"]], ["embed", "teleport"])

    def test_the_type_of_a_fragment_content_selects_the_case(self):
        fragments = [Fragment("a/b", content) for content in ("text", b"\x01", TextAt(Span.between(2, 5)))]
        [answer] = ask(extractor(lambda: Extraction(fragments=fragments)), "extract", [DocumentHandle({})])
        contents = [fragment["content"] for fragment in answer["fragments"]]
        self.assertEqual(contents, [{"text": "text"}, {"bytes": b"\x01"}, {"text-at": {"offset": 2, "length": 3}}])

    def test_filters_judge_documents_by_their_candidates_by_default(self):
        class X(Filter):
            name = "x"
            summary = "X."

            def judge_candidate(self, candidate: Candidate, stage: str):
                if stage == "post-fetch":
                    return Ruling.retry(timedelta(seconds=2), candidate.uri)

        visited = VisitHandle({"candidate": {"uri": "http://a/"}})
        self.assertEqual(
            ask(X, "judge_document", "post-fetch", DocumentHandle({}), visited),
            {"verdict": {"retry": 2000}, "reason": "http://a/"},
        )
        self.assertEqual(
            ask(X, "judge_candidates", "scope", CandidatesHandle([{"uri": "http://a/"}])),
            [{"verdict": "pass", "reason": ""}],
        )

    def test_strip_problems_become_errors_of_the_contract(self):
        class X(DigestStripper):
            name = "x"
            summary = "X."

            def strip(self, document):
                raise StripProblem(size=document.length)

        with self.assertRaises(Refused) as refused:
            ask(X, "strip", DocumentHandle({"text": "abc"}))
        self.assertEqual(refused.exception.value, {"too-large": 3})

    def test_waits_are_timedeltas(self):
        def waiting(answer):
            class X(WaitEvaluator):
                name = "x"
                summary = "X."

                def evaluate(self, visit):
                    return answer

            return ask(X, "evaluate", VisitHandle({}))

        self.assertEqual(waiting(timedelta(days=1)), {"next-visit": 86_400_000, "ask-again": None})
        self.assertEqual(waiting(Wait(timedelta(1), timedelta(0, 1)))["ask-again"], 1000)
        self.assertIsNone(waiting(None))
        with self.assertRaisesRegex(wire.WrongType, "next_visit must be a non-negative timedelta"):
            waiting(timedelta(-1))

    def test_ranks_go_from_1_to_255(self):
        def ranked(rank):
            class X(Precedence):
                name = "x"
                summary = "X."

                def rank_queue(self, queue):
                    return rank

            return ask(X, "rank_queue", QueueHandle({}))

        self.assertEqual([ranked(rank) for rank in (1, 255, None)], [1, 255, None])
        for rank in (0, 256, True, 1.5):
            with self.assertRaisesRegex(wire.WrongType, "must be a precedence from 1 to 255, or None, not"):
                ranked(rank)


class PageBehaviors(unittest.TestCase):
    def planned(self, answer, page=None, memory=b""):
        class X(PageBehavior):
            name = "x"
            summary = "X."

            def step(self, page, visit, memory):
                return answer(page, memory) if callable(answer) else answer

        return ask(X, "step", PageHandle(page or {}), VisitHandle({}), memory)

    def test_actions_have_the_form_of_the_contract(self):
        actions = [
            Scroll(),
            Scroll(ScrollBy(-300)),
            Scroll(ScrollToElement("#end")),
            Click("a"),
            Click("button", "more", at_most=5, only_new=True),
            WaitForSelector(".new", timedelta(milliseconds=100)),
            WaitForNetwork(),
            Pause(timedelta(milliseconds=7)),
            Evaluate("return 1"),
            Screenshot(),
        ]
        plan = self.planned(StepPlan(actions, ["button"], b"\x01"))
        self.assertEqual(
            plan.pop("actions"),
            [
                {"scroll": "bottom"},
                {"scroll": {"by": -300}},
                {"scroll": {"element": "#end"}},
                {"click": {"selector": "a", "text": None, "at-most": 1, "only-new": False}},
                {"click": {"selector": "button", "text": "more", "at-most": 5, "only-new": True}},
                {"wait-for-selector": {"selector": ".new", "at-most": 100}},
                {"wait-for-network": 5000},
                {"wait": 7},
                {"evaluate": "return 1"},
                "screenshot",
            ],
        )
        self.assertEqual(plan, {"count": ["button"], "memory": b"\x01", "finished": False})

    def test_a_list_of_actions_or_none_is_the_last_step(self):
        last = self.planned(lambda page, memory: (Click(word) for word in ("a", "b")))
        self.assertEqual((len(last["actions"]), last["finished"]), (2, True))
        self.assertEqual(self.planned(None), {"actions": [], "count": [], "memory": b"", "finished": True})

    def test_a_page_has_facts_counts_and_results(self):
        results = ["done", {"clicked": 3}, {"value": '{"a": [1]}'}, {"exception": "no"}, {"other": "later"}]
        made = page(uri="http://a/", step=2, time_left=1500, counts={"a": 4}, results=results)
        self.assertEqual((made.uri, made.step, made.time_left), ("http://a/", 2, timedelta(seconds=1.5)))
        self.assertEqual((made.count("a"), made.count("b")), (4, None))
        self.assertEqual([result.name for result in made.results], ["done", "clicked", "value", "exception", "later"])
        self.assertEqual([result.clicked for result in made.results], [0, 3, 0, 0, 0])
        self.assertEqual(made.results[2].value, {"a": [1]})
        self.assertEqual(made.results[3], ActionResult("exception", "no"))

    def test_memory_is_passed_on(self):
        self.assertEqual(self.planned(lambda page, memory: StepPlan(memory=memory + b"2"), memory=b"1")["memory"], b"12")

    def test_wrong_actions_are_reported_with_their_place(self):
        names = "scroll, click, wait-for-selector, wait-for-network, wait, evaluate, screenshot"
        for answer, message in [
            ([7], f"actions[0] must be one of {names}, not int 7"),
            ([Scroll("botom")], "actions[0] must be one of top, bottom, to, by, element, not str 'botom'"),
            ([Scroll(ScrollBy("1"))], "actions[0] must be an int, not str '1'"),
            ([Click(3)], "actions[0].selector must be a str, not int 3"),
            (StepPlan(memory="text"), "memory must be bytes, not str 'text'"),
        ]:
            with self.subTest(message), self.assertRaises(wire.WrongType) as wrong:
                self.planned(answer)
            self.assertEqual(str(wrong.exception), message)


class Views(unittest.TestCase):
    def test_times_are_datetimes_and_timedeltas(self):
        made = visit(now=1000, last_wait=5000, history=[{"at": 0, "state": "changed"}], signals=[{"at": 2**60}])
        self.assertEqual(made.now, datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC))
        self.assertEqual(made.last_wait, timedelta(seconds=5))
        self.assertEqual(made.history, [PastVisit(wire.EPOCH, 0, "changed")])
        self.assertEqual(made.signals[0].at.year, 9999)

    def test_candidates_of_a_list_have_the_attributes_of_a_candidate(self):
        facts = {"uri": "http://b/", "surt": "http://(b,)/", "hop_path": "L", "via": "http://a/", "address": "::1"}
        host(first={"kind": "surt-prefixes", "rows": [{"key": "http://("}, {"key": "http://(b,", "value": "2"}]})
        [view] = candidates(facts)
        whole = Candidate(**facts)
        for name in (*facts, "seed", "source", "attributes"):
            self.assertEqual(getattr(view, name), getattr(whole, name), name)
        self.assertTrue(view.is_in_table("first") and whole.is_in_table("first"))
        self.assertFalse(view.is_in_table("nothing") or whole.is_in_table("nothing"))
        self.assertEqual(table("first").find("http://(b,)/").value, "2")

    def test_handles_record_the_values_that_a_plugin_sets(self):
        page = document("a", kept={"site": {"seen": {"version": 1, "value": "2"}}}, headers=[{"name": "ETag", "value": "x"}])
        self.assertEqual((page.site_value("seen").value, page.header("etag")), ("2", ["x"]))
        page.set_attribute("last", "3")
        page.annotate("odd")
        self.assertEqual(page.handle.kept["uri"], {"last": {"version": 0, "value": "3"}})
        page.set_attribute("last", "")
        self.assertIsNone(page.attribute("last"))
        self.assertEqual(page.handle.annotations, ["odd"])

    def test_large_documents_are_read_in_parts(self):
        content = bytes(9 * 1024 * 1024) + b"\x01"
        page, lengths = document(bytes=content), []
        read = page.handle.read
        page.handle.read = lambda offset, length: lengths.append(length) or read(offset, length)
        self.assertEqual(page.content(), content)
        self.assertEqual(lengths, [READ_BYTES_MAX] * 2)

    def test_a_configured_plugin_can_be_called_directly(self):
        class X(Filter):
            name = "x"
            summary = "X."

            @dataclass
            class Settings:
                the_word: str = "a"

        self.assertEqual(configured(X, the_word="b").settings.the_word, "b")


if __name__ == "__main__":
    unittest.main()
