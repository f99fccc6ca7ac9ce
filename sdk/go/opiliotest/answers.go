package opiliotest

import (
	"errors"
	"time"

	opilio "github.com/opilio/opilio/sdk/go"
)

// object is a JSON object. Answers use the names of the contract, as cases do.
type object = map[string]any

func list[T any](from []T, as func(T) any) []any {
	result := make([]any, 0, len(from))
	for _, one := range from {
		result = append(result, as(one))
	}
	return result
}

// numbers returns bytes as a list of numbers. encoding/json would write them as base64.
func numbers(from []byte) any {
	if from == nil {
		return nil
	}
	return list(from, func(octet byte) any { return octet })
}

func faultJSON(of opilio.Fault) any { return object{"pointer": of.Pointer, "problem": of.Problem} }

func extractionJSON(of opilio.Extraction) any {
	return object{
		"links": list(of.Links, linkJSON), "fragments": list(of.Fragments, fragmentJSON), "base": of.Base, "finished": of.Finished,
		"problem": of.Problem,
	}
}

func linkJSON(of opilio.Link) any {
	hops := [...]string{"link", "embed", "speculative", "redirect", "prerequisite", "inferred", "manifest", "submit"}
	details := object{}
	if form := of.Submission; form != nil {
		details["submission"] = object{"method": form.Method, "content-type": form.ContentType, "body": numbers(form.Body)}
	}
	dates := object{}
	for name, date := range map[string]time.Time{"published": of.Published, "modified": of.Modified} {
		if !date.IsZero() {
			dates[name] = date.UnixMilli()
		}
	}
	details["dates"] = dates
	details["attributes"] = list(of.Attributes, func(one opilio.NamedValue) any {
		return object{"name": one.Name, "value": one.Value}
	})
	return object{"uri": of.URI, "hop": hops[of.Hop], "context": of.Context, "base": of.Base, "details": details}
}

// fragmentJSON chooses the content in the same order as content in exports_wasip1.go.
func fragmentJSON(of opilio.Fragment) any {
	content := object{"text": of.Text}
	switch {
	case of.Text != "":
	case of.Bytes != nil:
		content = object{"bytes": numbers(of.Bytes)}
	case of.TextAt != nil:
		content = object{"text-at": spanJSON(*of.TextAt)}
	case of.BytesAt != nil:
		content = object{"bytes-at": spanJSON(*of.BytesAt)}
	}
	return object{"media-type": of.MediaType, "content": content, "context": of.Context, "base": of.Base}
}

func spanJSON(of opilio.Span) any { return object{"offset": of.Offset, "length": of.Length} }

func rulingJSON(of opilio.Ruling) any {
	word, after, reason := of.Verdict()
	if word == "retry" {
		return object{"verdict": object{word: after.Milliseconds()}, "reason": reason}
	}
	return object{"verdict": word, "reason": reason}
}

func strippedJSON(spans []opilio.Span, err error) any {
	var large opilio.TooLarge
	switch {
	case errors.As(err, &large):
		return object{"error": object{"too-large": uint64(large)}}
	case err != nil:
		return object{"error": object{"other": err.Error()}}
	}
	return object{"ok": list(spans, spanJSON)}
}

func comparisonJSON(of opilio.Comparison) any {
	differences := [...]any{nil, "changed", "unchanged"}
	return object{"difference": differences[of.Difference], "fingerprint": numbers(of.Fingerprint), "reason": of.Reason}
}

func waitJSON(of opilio.Wait, answers bool) any {
	if !answers {
		return nil
	}
	return object{"next-visit": of.NextVisit.Milliseconds(), "ask-again": of.AskAgain.Milliseconds()}
}

func rankJSON(of uint8) any {
	if of == 0 {
		return nil
	}
	return of
}

func observationJSON(of opilio.Observation) any {
	return object{"memory": numbers(of.Memory), "lines": list(of.Lines, func(one opilio.Line) any {
		return object{"file": one.File, "text": one.Text}
	})}
}

func reportJSON(of opilio.Report) any { return object{"file": of.File, "content": of.Content} }

func planJSON(of opilio.StepPlan) any {
	return object{
		"actions": list(of.Actions, actionJSON), "count": list(of.Count, func(one string) any { return one }),
		"memory": numbers(of.Memory), "finished": of.Finished,
	}
}

func actionJSON(of opilio.Action) any {
	switch of := of.(type) {
	case opilio.ScrollToTop:
		return object{"scroll": "top"}
	case opilio.ScrollToBottom:
		return object{"scroll": "bottom"}
	case opilio.ScrollTo:
		return object{"scroll": object{"to": uint32(of)}}
	case opilio.ScrollBy:
		return object{"scroll": object{"by": int32(of)}}
	case opilio.ScrollToElement:
		return object{"scroll": object{"element": string(of)}}
	case opilio.Click:
		return object{"click": object{
			"selector": of.Selector, "text": of.Text, "at-most": max(of.AtMost, 1), "only-new": of.OnlyNew,
		}}
	case opilio.WaitForSelector:
		return object{"wait-for-selector": object{"selector": of.Selector, "at-most": of.AtMost.Milliseconds()}}
	case opilio.WaitForNetwork:
		return object{"wait-for-network": time.Duration(of).Milliseconds()}
	case opilio.Pause:
		return object{"wait": time.Duration(of).Milliseconds()}
	case opilio.Evaluate:
		return object{"evaluate": string(of)}
	case opilio.Screenshot:
		return "screenshot"
	}
	panic("an action of a step is nil")
}
