package opilio

import (
	"errors"
	"fmt"
	"os"
	"reflect"
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

// current is the configured plugin.
var current any

// init sets the functions that the host calls. Each drops its borrowed resources before it returns.
func init() {
	start.Describe = describe
	start.Configure = configure
	extract.Extract = func(all []*documents.Document) []extractors.Extraction {
		defer exitOnPanic()
		plugin := pluginAs[Extractor]()
		result := make([]extractors.Extraction, 0, len(all))
		for _, one := range all {
			result = append(result, extraction(plugin.Extract(hostDocument{one})))
			one.Drop()
		}
		return result
	}
	judge.JudgeCandidates = func(stage filters.Stage, of *documents.Candidates) []filters.Ruling {
		defer exitOnPanic()
		defer of.Drop()
		result := make([]filters.Ruling, 0, of.Length())
		plugin, judges := current.(CandidateFilter)
		for _, one := range candidates(of) {
			answer := Pass()
			if judges {
				answer = plugin.JudgeCandidate(Stage(stage.Tag()), one)
			}
			result = append(result, ruling(answer))
		}
		return result
	}
	judge.JudgeDocument = func(stage filters.Stage, document *documents.Document, visit *documents.Visit) filters.Ruling {
		defer exitOnPanic()
		defer document.Drop()
		defer visit.Drop()
		if plugin, judges := current.(DocumentFilter); judges {
			return ruling(plugin.JudgeDocument(Stage(stage.Tag()), hostDocument{document}, hostVisit{visit}))
		}
		return ruling(pluginAs[CandidateFilter]().JudgeCandidate(Stage(stage.Tag()), hostVisit{visit}.Candidate()))
	}
	strip.Strip = func(document *documents.Document) wit.Result[[]types.Span, strippers.StripProblem] {
		defer exitOnPanic()
		defer document.Drop()
		spans, err := pluginAs[DigestStripper]().Strip(hostDocument{document})
		var large TooLarge
		if errors.As(err, &large) {
			return wit.Err[[]types.Span](strippers.MakeStripProblemTooLarge(uint64(large)))
		}
		if err != nil {
			return wit.Err[[]types.Span](strippers.MakeStripProblemOther(err.Error()))
		}
		result := make([]types.Span, 0, len(spans))
		for _, one := range spans {
			result = append(result, span(one))
		}
		return wit.Ok[[]types.Span, strippers.StripProblem](result)
	}
	change.Compare = func(document *documents.Document, visit *documents.Visit, last wit.Option[[]uint8]) changes.Comparison {
		defer exitOnPanic()
		defer document.Drop()
		defer visit.Drop()
		before, _ := last.Get()
		if last.Tag() == wit.OptionSome && before == nil {
			before = []byte{}
		}
		answer := pluginAs[ChangeEvaluator]().Compare(hostDocument{document}, hostVisit{visit}, before)
		result := changes.Comparison{Reason: answer.Reason}
		if answer.Difference != NoAnswer {
			result.Difference = wit.Some(changes.Difference(answer.Difference - Differs))
		}
		if answer.Fingerprint != nil {
			result.Fingerprint = wit.Some(answer.Fingerprint)
		}
		return result
	}
	wait.Evaluate = func(visit *documents.Visit) wit.Option[waits.Wait] {
		defer exitOnPanic()
		defer visit.Drop()
		answer, ok := pluginAs[WaitEvaluator]().Evaluate(hostVisit{visit})
		if !ok {
			return wit.None[waits.Wait]()
		}
		result := waits.Wait{NextVisit: milliseconds(answer.NextVisit)}
		if answer.AskAgain != 0 {
			result.AskAgain = wit.Some(milliseconds(answer.AskAgain))
		}
		return wit.Some(result)
	}
	rank.RankCandidates = func(of *documents.Candidates, page wit.Option[*documents.Document]) []wit.Option[uint8] {
		defer exitOnPanic()
		defer of.Drop()
		var document Document
		if page, ok := page.Get(); ok {
			defer page.Drop()
			document = hostDocument{page}
		}
		plugin, ranks := current.(CandidatePrecedence)
		result := make([]wit.Option[uint8], 0, of.Length())
		for _, one := range candidates(of) {
			answer := uint8(0)
			if ranks {
				answer = plugin.RankCandidate(one, document)
			}
			result = append(result, optionalRank(answer))
		}
		return result
	}
	rank.RankQueue = func(queue *documents.Queue) wit.Option[uint8] {
		defer exitOnPanic()
		defer queue.Drop()
		if plugin, ranks := current.(QueuePrecedence); ranks {
			return optionalRank(plugin.RankQueue(hostQueue{queue}))
		}
		return wit.None[uint8]()
	}
	observe.Observe = func(memory []uint8, batch []observers.Finished) observers.Observation {
		defer exitOnPanic()
		events := make([]Finished, 0, len(batch))
		for _, one := range batch {
			events = append(events, finished(one))
		}
		answer := pluginAs[Observer]().Observe(memory, events)
		result := observers.Observation{Memory: answer.Memory}
		for _, line := range answer.Lines {
			result.Lines = append(result.Lines, observers.Line{File: line.File, Text: line.Text})
		}
		return result
	}
	observe.Report = func(memory []uint8, now uint64) []observers.ReportFile {
		defer exitOnPanic()
		plugin, writes := current.(Reporter)
		if !writes {
			return nil
		}
		var result []observers.ReportFile
		for _, one := range plugin.Report(memory, instant(now)) {
			result = append(result, observers.ReportFile{File: one.File, Content: one.Content})
		}
		return result
	}
	browse.Step = func(page *documents.Page, visit *documents.Visit, memory []uint8) behaviors.StepPlan {
		defer exitOnPanic()
		defer page.Drop()
		defer visit.Drop()
		plan := pluginAs[PageBehavior]().Step(hostPage{page}, hostVisit{visit}, memory)
		result := behaviors.StepPlan{Count: plan.Count, Memory: plan.Memory, Finished: plan.Finished}
		for _, one := range plan.Actions {
			result.Actions = append(result.Actions, action(one))
		}
		return result
	}
}

// exitOnPanic logs a panic with its stack as one message, and ends the call with an error. Go itself would log each word as a
// message of its own.
func exitOnPanic() {
	if panicked := recover(); panicked != nil {
		Error("panic: %v\n%s", panicked, debug.Stack())
		os.Exit(2)
	}
}

// pluginAs returns the configured plugin as an interface of a kind.
func pluginAs[T any]() T {
	plugin, ok := current.(T)
	if !ok {
		panic(fmt.Sprintf("%T does not implement %s, or the plugin was not configured", current, reflect.TypeFor[T]()))
	}
	return plugin
}

func describe() []setups.Description {
	defer exitOnPanic()
	result := make([]setups.Description, 0, len(exported))
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
		result = append(result, setups.Description{
			Name:           one.about.Name,
			Version:        one.about.Version,
			Summary:        one.about.Summary,
			Kinds:          kinds,
			Handles:        setups.Handles{MediaTypes: one.about.MediaTypes, Uris: one.about.URIs},
			SettingsSchema: one.schema,
			Keeps:          keeps,
		})
	}
	return result
}

func setupKind(of kind) setups.Kind {
	return [...]func() setups.Kind{
		setups.MakeKindExtractor, setups.MakeKindFilter, setups.MakeKindDigestStripper, setups.MakeKindChangeEvaluator,
		setups.MakeKindWaitEvaluator, setups.MakeKindPrecedence, setups.MakeKindObserver, setups.MakeKindPageBehavior,
	}[of]()
}

func configure(name, settings string) wit.Result[wit.Unit, []setups.SettingsFault] {
	defer exitOnPanic()
	faults := []Fault{{"", "the component has no plugin of this name"}}
	for _, one := range exported {
		if one.about.Name == name {
			current, faults = one.configure(settings)
		}
	}
	if len(faults) == 0 {
		return wit.Ok[wit.Unit, []setups.SettingsFault](wit.Unit{})
	}
	var result []setups.SettingsFault
	for _, fault := range faults {
		result = append(result, setups.SettingsFault{Pointer: fault.Pointer, Problem: fault.Problem})
	}
	return wit.Err[wit.Unit](result)
}

// optionalRank returns none for 0, which is not a precedence.
func optionalRank(precedence uint8) wit.Option[uint8] {
	if precedence == 0 {
		return wit.None[uint8]()
	}
	return wit.Some(precedence)
}

func optionalText(of string) wit.Option[string] {
	if of == "" {
		return wit.None[string]()
	}
	return wit.Some(of)
}

func span(of Span) types.Span { return types.Span{Offset: of.Offset, Length: of.Length} }

func milliseconds(of time.Duration) uint64 { return uint64(max(of, 0) / time.Millisecond) }

func optionalInstant(of time.Time) wit.Option[uint64] {
	if of.IsZero() {
		return wit.None[uint64]()
	}
	return wit.Some(uint64(of.UnixMilli()))
}

func ruling(of Ruling) filters.Ruling {
	result := filters.Ruling{Reason: of.reason}
	switch of.verdict {
	case accept:
		result.Verdict = filters.MakeVerdictAccept()
	case reject:
		result.Verdict = filters.MakeVerdictReject()
	case pass:
		result.Verdict = filters.MakeVerdictPass()
	case unchanged:
		result.Verdict = filters.MakeVerdictUnchanged()
	case retry:
		result.Verdict = filters.MakeVerdictRetry(milliseconds(of.after))
	}
	return result
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
			Selector: of.Selector, Text: optionalText(of.Text), AtMost: max(of.AtMost, 1), OnlyNew: of.OnlyNew,
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
	result := extractors.Extraction{Base: optionalText(of.Base), Finished: of.Finished, Problem: optionalText(of.Problem)}
	result.Links = make([]types.Link, 0, len(of.Links))
	for _, one := range of.Links {
		result.Links = append(result.Links, link(one))
	}
	for _, one := range of.Fragments {
		result.Fragments = append(result.Fragments, types.Fragment{
			MediaType: one.MediaType,
			Content:   content(one),
			Context:   one.Context,
			Base:      optionalText(one.Base),
		})
	}
	return result
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
	result := types.Link{Uri: of.URI, Hop: hops[of.Hop](), Context: of.Context, Base: optionalText(of.Base)}
	if of.Submission == nil && of.Published.IsZero() && of.Modified.IsZero() && len(of.Attributes) == 0 {
		return result
	}
	var details types.LinkDetails
	if form := of.Submission; form != nil {
		details.Submission = wit.Some(types.Submission{Method: form.Method, ContentType: form.ContentType, Body: form.Body})
	}
	if !of.Published.IsZero() || !of.Modified.IsZero() {
		details.Dates = wit.Some(types.DateSignal{Published: optionalInstant(of.Published), Modified: optionalInstant(of.Modified)})
	}
	for _, one := range of.Attributes {
		details.Attributes = append(details.Attributes, types.NamedValue{Name: one.Name, Value: one.Value})
	}
	result.Details = wit.Some(details)
	return result
}
