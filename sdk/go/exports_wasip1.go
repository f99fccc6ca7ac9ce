package opilio

import (
	"errors"
	"fmt"
	"os"
	"runtime/debug"
	"time"

	change "github.com/opilio/opilio/sdk/go/bindings/exports/export_opilio_plugin_change_evaluator"
	strip "github.com/opilio/opilio/sdk/go/bindings/exports/export_opilio_plugin_digest_stripper"
	extract "github.com/opilio/opilio/sdk/go/bindings/exports/export_opilio_plugin_extractor"
	judge "github.com/opilio/opilio/sdk/go/bindings/exports/export_opilio_plugin_filter"
	observe "github.com/opilio/opilio/sdk/go/bindings/exports/export_opilio_plugin_observer"
	browse "github.com/opilio/opilio/sdk/go/bindings/exports/export_opilio_plugin_page_behavior"
	rank "github.com/opilio/opilio/sdk/go/bindings/exports/export_opilio_plugin_precedence"
	start "github.com/opilio/opilio/sdk/go/bindings/exports/export_opilio_plugin_setup"
	wait "github.com/opilio/opilio/sdk/go/bindings/exports/export_opilio_plugin_wait_evaluator"
	_ "github.com/opilio/opilio/sdk/go/bindings/exports/wit_exports"
	changes "github.com/opilio/opilio/sdk/go/bindings/imports/opilio_plugin_change_evaluator"
	strippers "github.com/opilio/opilio/sdk/go/bindings/imports/opilio_plugin_digest_stripper"
	documents "github.com/opilio/opilio/sdk/go/bindings/imports/opilio_plugin_documents"
	extractors "github.com/opilio/opilio/sdk/go/bindings/imports/opilio_plugin_extractor"
	filters "github.com/opilio/opilio/sdk/go/bindings/imports/opilio_plugin_filter"
	observers "github.com/opilio/opilio/sdk/go/bindings/imports/opilio_plugin_observer"
	behaviors "github.com/opilio/opilio/sdk/go/bindings/imports/opilio_plugin_page_behavior"
	setups "github.com/opilio/opilio/sdk/go/bindings/imports/opilio_plugin_setup"
	types "github.com/opilio/opilio/sdk/go/bindings/imports/opilio_plugin_types"
	waits "github.com/opilio/opilio/sdk/go/bindings/imports/opilio_plugin_wait_evaluator"
	"github.com/opilio/opilio/sdk/go/internal/wit"
)

// The configured plugin.
var current any

// The functions that the host calls. Each drops its borrowed resources before it returns.
func init() {
	start.Describe = describe
	start.Configure = configure
	extract.Extract = func(all []*documents.Document) []extractors.Extraction {
		defer report()
		plugin := as[Extractor]()
		made := make([]extractors.Extraction, 0, len(all))
		for _, one := range all {
			made = append(made, extraction(plugin.Extract(hostDocument{one})))
			one.Drop()
		}
		return made
	}
	judge.JudgeCandidates = func(stage filters.Stage, of *documents.Candidates) []filters.Ruling {
		defer report()
		defer of.Drop()
		made := make([]filters.Ruling, 0, of.Length())
		plugin, judges := current.(CandidateFilter)
		for _, one := range candidates(of) {
			answer := Pass()
			if judges {
				answer = plugin.JudgeCandidate(Stage(stage.Tag()), one)
			}
			made = append(made, ruling(answer))
		}
		return made
	}
	judge.JudgeDocument = func(stage filters.Stage, document *documents.Document, visit *documents.Visit) filters.Ruling {
		defer report()
		defer document.Drop()
		defer visit.Drop()
		if plugin, judges := current.(DocumentFilter); judges {
			return ruling(plugin.JudgeDocument(Stage(stage.Tag()), hostDocument{document}, hostVisit{visit}))
		}
		return ruling(as[CandidateFilter]().JudgeCandidate(Stage(stage.Tag()), hostVisit{visit}.Candidate()))
	}
	strip.Strip = func(document *documents.Document) wit.Result[[]types.Span, strippers.StripProblem] {
		defer report()
		defer document.Drop()
		spans, err := as[DigestStripper]().Strip(hostDocument{document})
		var large TooLarge
		if errors.As(err, &large) {
			return wit.Err[[]types.Span](strippers.MakeStripProblemTooLarge(uint64(large)))
		}
		if err != nil {
			return wit.Err[[]types.Span](strippers.MakeStripProblemOther(err.Error()))
		}
		made := make([]types.Span, 0, len(spans))
		for _, one := range spans {
			made = append(made, span(one))
		}
		return wit.Ok[[]types.Span, strippers.StripProblem](made)
	}
	change.Compare = func(document *documents.Document, visit *documents.Visit, last wit.Option[[]uint8]) changes.Comparison {
		defer report()
		defer document.Drop()
		defer visit.Drop()
		before, _ := last.Get()
		if last.Tag() == wit.OptionSome && before == nil {
			before = []byte{}
		}
		said := as[ChangeEvaluator]().Compare(hostDocument{document}, hostVisit{visit}, before)
		made := changes.Comparison{Reason: said.Reason}
		if said.Difference != NoAnswer {
			made.Difference = wit.Some(changes.Difference(said.Difference - Differs))
		}
		if said.Fingerprint != nil {
			made.Fingerprint = wit.Some(said.Fingerprint)
		}
		return made
	}
	wait.Evaluate = func(visit *documents.Visit) wit.Option[waits.Wait] {
		defer report()
		defer visit.Drop()
		said, answers := as[WaitEvaluator]().Evaluate(hostVisit{visit})
		if !answers {
			return wit.None[waits.Wait]()
		}
		made := waits.Wait{NextVisit: milliseconds(said.NextVisit)}
		if said.AskAgain != 0 {
			made.AskAgain = wit.Some(milliseconds(said.AskAgain))
		}
		return wit.Some(made)
	}
	rank.RankCandidates = func(of *documents.Candidates, page wit.Option[*documents.Document]) []wit.Option[uint8] {
		defer report()
		defer of.Drop()
		var document Document
		if page, is := page.Get(); is {
			defer page.Drop()
			document = hostDocument{page}
		}
		plugin, ranks := current.(CandidatePrecedence)
		made := make([]wit.Option[uint8], 0, of.Length())
		for _, one := range candidates(of) {
			said := uint8(0)
			if ranks {
				said = plugin.RankCandidate(one, document)
			}
			made = append(made, some(said))
		}
		return made
	}
	rank.RankQueue = func(queue *documents.Queue) wit.Option[uint8] {
		defer report()
		defer queue.Drop()
		if plugin, ranks := current.(QueuePrecedence); ranks {
			return some(plugin.RankQueue(hostQueue{queue}))
		}
		return wit.None[uint8]()
	}
	observe.Observe = func(memory []uint8, events []observers.Finished) observers.Observation {
		defer report()
		seen := make([]Finished, 0, len(events))
		for _, one := range events {
			seen = append(seen, finished(one))
		}
		said := as[Observer]().Observe(memory, seen)
		made := observers.Observation{Memory: said.Memory}
		for _, line := range said.Lines {
			made.Lines = append(made.Lines, observers.Line{File: line.File, Text: line.Text})
		}
		return made
	}
	observe.Report = func(memory []uint8, now uint64) []observers.ReportFile {
		defer report()
		plugin, writes := current.(Reporter)
		if !writes {
			return nil
		}
		var made []observers.ReportFile
		for _, one := range plugin.Report(memory, instant(now)) {
			made = append(made, observers.ReportFile{File: one.File, Content: one.Content})
		}
		return made
	}
	browse.Step = func(page *documents.Page, visit *documents.Visit, memory []uint8) behaviors.StepPlan {
		defer report()
		defer page.Drop()
		defer visit.Drop()
		plan := as[PageBehavior]().Step(hostPage{page}, hostVisit{visit}, memory)
		made := behaviors.StepPlan{Count: plan.Count, Memory: plan.Memory, Finished: plan.Finished}
		for _, one := range plan.Actions {
			made.Actions = append(made.Actions, action(one))
		}
		return made
	}
}

// A panic ends the call with an error. It is logged as one line with the stack, because Go would log each word on its own.
func report() {
	if panicked := recover(); panicked != nil {
		Error("panic: %v\n%s", panicked, debug.Stack())
		os.Exit(2)
	}
}

func as[T any]() T {
	plugin, is := current.(T)
	if !is {
		panic(fmt.Sprintf("called as what it is not (%T), or before it was configured", *new(T)))
	}
	return plugin
}

func describe() []setups.Description {
	defer report()
	made := make([]setups.Description, 0, len(exported))
	for _, one := range exported {
		kinds := make([]setups.Kind, 0, len(one.kinds))
		for _, kind := range one.kinds {
			kinds = append(kinds, setupKind(kind))
		}
		keeps := make([]setups.Keep, 0, len(one.about.Keeps))
		for _, keep := range one.about.Keeps {
			keeper := setups.MakeKeeperUri()
			if keep.WithSite {
				keeper = setups.MakeKeeperSite()
			}
			keeps = append(keeps, setups.Keep{Name: keep.Name, Keeper: keeper, Version: keep.Version})
		}
		made = append(made, setups.Description{
			Name:           one.about.Name,
			Version:        one.about.Version,
			Summary:        one.about.Summary,
			Kinds:          kinds,
			Handles:        setups.Handles{MediaTypes: one.about.MediaTypes, Uris: one.about.URIs},
			SettingsSchema: one.schema,
			Keeps:          keeps,
		})
	}
	return made
}

func setupKind(of kind) setups.Kind {
	return [...]func() setups.Kind{
		setups.MakeKindExtractor, setups.MakeKindFilter, setups.MakeKindDigestStripper, setups.MakeKindChangeEvaluator,
		setups.MakeKindWaitEvaluator, setups.MakeKindPrecedence, setups.MakeKindObserver, setups.MakeKindPageBehavior,
	}[of]()
}

func configure(name, settings string) wit.Result[wit.Unit, []setups.SettingsFault] {
	defer report()
	faults := []Fault{{"", "there is no plugin of this name in the component"}}
	for _, one := range exported {
		if one.about.Name == name {
			current, faults = one.configure(settings)
		}
	}
	if len(faults) == 0 {
		return wit.Ok[wit.Unit, []setups.SettingsFault](wit.Unit{})
	}
	var made []setups.SettingsFault
	for _, fault := range faults {
		made = append(made, setups.SettingsFault{Pointer: fault.Pointer, Problem: fault.Problem})
	}
	return wit.Err[wit.Unit](made)
}

func some(precedence uint8) wit.Option[uint8] {
	if precedence == 0 {
		return wit.None[uint8]()
	}
	return wit.Some(precedence)
}

func text(of string) wit.Option[string] {
	if of == "" {
		return wit.None[string]()
	}
	return wit.Some(of)
}

func span(of Span) types.Span { return types.Span{Offset: of.Offset, Length: of.Length} }

func milliseconds(of time.Duration) uint64 { return uint64(max(of, 0) / time.Millisecond) }

func moment(of time.Time) wit.Option[uint64] {
	if of.IsZero() {
		return wit.None[uint64]()
	}
	return wit.Some(uint64(of.UnixMilli()))
}

func ruling(of Ruling) filters.Ruling {
	made := filters.Ruling{Reason: of.reason}
	switch of.verdict {
	case accept:
		made.Verdict = filters.MakeVerdictAccept()
	case reject:
		made.Verdict = filters.MakeVerdictReject()
	case pass:
		made.Verdict = filters.MakeVerdictPass()
	case unchanged:
		made.Verdict = filters.MakeVerdictUnchanged()
	case retry:
		made.Verdict = filters.MakeVerdictRetry(milliseconds(of.after))
	}
	return made
}

func action(of Action) behaviors.Action {
	switch of := of.(type) {
	case ScrollToTop:
		return behaviors.MakeActionScroll(behaviors.MakeScrollTargetTop())
	case ScrollToBottom:
		return behaviors.MakeActionScroll(behaviors.MakeScrollTargetBottom())
	case ScrollTo:
		return behaviors.MakeActionScroll(behaviors.MakeScrollTargetTo(uint32(of)))
	case ScrollBy:
		return behaviors.MakeActionScroll(behaviors.MakeScrollTargetBy(int32(of)))
	case ScrollToElement:
		return behaviors.MakeActionScroll(behaviors.MakeScrollTargetElement(string(of)))
	case Click:
		return behaviors.MakeActionClick(behaviors.Click{
			Selector: of.Selector, Text: text(of.Text), AtMost: max(of.AtMost, 1), OnlyNew: of.OnlyNew,
		})
	case WaitForSelector:
		return behaviors.MakeActionWaitForSelector(behaviors.SelectorWait{
			Selector: of.Selector, AtMost: milliseconds(of.AtMost),
		})
	case WaitForNetwork:
		return behaviors.MakeActionWaitForNetwork(milliseconds(time.Duration(of)))
	case Pause:
		return behaviors.MakeActionWait(milliseconds(time.Duration(of)))
	case Evaluate:
		return behaviors.MakeActionEvaluate(string(of))
	case Screenshot:
		return behaviors.MakeActionScreenshot()
	}
	panic("an action of a step is nil")
}

func extraction(of Extraction) extractors.Extraction {
	made := extractors.Extraction{Base: text(of.Base), Finished: of.Finished, Problem: text(of.Problem)}
	made.Links = make([]types.Link, 0, len(of.Links))
	for _, one := range of.Links {
		made.Links = append(made.Links, link(one))
	}
	for _, one := range of.Fragments {
		made.Fragments = append(made.Fragments, types.Fragment{
			MediaType: one.MediaType,
			Content:   content(one),
			Context:   one.Context,
			Base:      text(one.Base),
		})
	}
	return made
}

func content(of Fragment) types.FragmentContent {
	switch {
	case of.Text != "":
		return types.MakeFragmentContentText(of.Text)
	case of.Bytes != nil:
		return types.MakeFragmentContentBytes(of.Bytes)
	case of.TextAt != nil:
		return types.MakeFragmentContentTextAt(span(*of.TextAt))
	case of.BytesAt != nil:
		return types.MakeFragmentContentBytesAt(span(*of.BytesAt))
	}
	return types.MakeFragmentContentText("")
}

func link(of Link) types.Link {
	hops := [...]func() types.Hop{
		types.MakeHopLink, types.MakeHopEmbed, types.MakeHopSpeculative, types.MakeHopRedirect, types.MakeHopPrerequisite,
		types.MakeHopInferred, types.MakeHopManifest, types.MakeHopSubmit,
	}
	made := types.Link{Uri: of.URI, Hop: hops[of.Hop](), Context: of.Context, Base: text(of.Base)}
	if of.Submission == nil && of.Published.IsZero() && of.Modified.IsZero() && len(of.Attributes) == 0 {
		return made
	}
	var details types.LinkDetails
	if form := of.Submission; form != nil {
		details.Submission = wit.Some(types.Submission{Method: form.Method, ContentType: form.ContentType, Body: form.Body})
	}
	if !of.Published.IsZero() || !of.Modified.IsZero() {
		details.Dates = wit.Some(types.DateSignal{Published: moment(of.Published), Modified: moment(of.Modified)})
	}
	for _, one := range of.Attributes {
		details.Attributes = append(details.Attributes, types.NamedValue{Name: one.Name, Value: one.Value})
	}
	made.Details = wit.Some(details)
	return made
}
