package opilio

import "time"

// StepPlan is the answer of a page behaviour. Unless Finished is set, there is a next step after the actions.
type StepPlan struct {
	Actions []Action
	// Count lists the CSS selectors that Page.Count can be asked for at the next step.
	Count []string
	// Memory is passed to the next Step.
	Memory []byte
	// Finished ends the behaviour after the actions.
	Finished bool
}

// Action is an action on a page: ScrollToTop, ScrollToBottom, ScrollTo, ScrollBy, ScrollToElement, Click, WaitForSelector,
// WaitForNetwork, Pause, Evaluate or Screenshot.
type Action interface{ isAction() }

// ScrollToTop scrolls the window to the beginning of the page.
type ScrollToTop struct{}

// ScrollToBottom scrolls the window to the end of the page.
type ScrollToBottom struct{}

// ScrollTo scrolls the window to this number of CSS pixels from the beginning of the page.
type ScrollTo uint32

// ScrollBy scrolls the window down by this number of CSS pixels. A negative number scrolls up.
type ScrollBy int32

// ScrollToElement scrolls the window to the first element that matches this CSS selector.
type ScrollToElement string

// Click clicks visible elements, in document order.
type Click struct {
	// Selector is a CSS selector.
	Selector string
	// Text is a regular expression (JavaScript syntax, case ignored) that must match in the element's text,
	// label or value. Empty: any element.
	Text string
	// AtMost is the number of elements to click. 0 means 1.
	AtMost uint32
	// OnlyNew leaves out elements that an earlier action clicked.
	OnlyNew bool
}

// WaitForSelector waits until an element matches a CSS selector, at most for this time.
type WaitForSelector struct {
	Selector string
	AtMost   time.Duration
}

// WaitForNetwork waits until the page has no requests in flight, at most for this time.
type WaitForNetwork time.Duration

// Pause waits for this time.
type Pause time.Duration

// Evaluate runs the body of an async function in the page. The result is ResultValue with the returned value as JSON.
type Evaluate string

// Screenshot takes a picture of the window.
type Screenshot struct{}

func (ScrollToTop) isAction()     {}
func (ScrollToBottom) isAction()  {}
func (ScrollTo) isAction()        {}
func (ScrollBy) isAction()        {}
func (ScrollToElement) isAction() {}
func (Click) isAction()           {}
func (WaitForSelector) isAction() {}
func (WaitForNetwork) isAction()  {}
func (Pause) isAction()           {}
func (Evaluate) isAction()        {}
func (Screenshot) isAction()      {}

// ResultKind is the kind of an action's result.
type ResultKind uint8

const (
	// ResultDone means that the action was carried out.
	ResultDone ResultKind = iota
	// ResultClicked means that elements were clicked.
	ResultClicked
	// ResultValue is the result of a script.
	ResultValue
	// ResultNoElement means that no element matches, or that none matched in time.
	ResultNoElement
	// ResultNotIdle means that the network did not become idle in time.
	ResultNotIdle
	// ResultInvalid means that a selector or regular expression is invalid.
	ResultInvalid
	// ResultException means that the script threw an exception, or took too long.
	ResultException
	// ResultRefused means that the host did not carry out the action.
	ResultRefused
	// OtherResult is a result of a later version of the contract.
	OtherResult
)

// ActionResult is the result of an action.
type ActionResult struct {
	Kind ResultKind
	// Clicked is the number of clicked elements of ResultClicked.
	Clicked uint32
	// Text is the JSON of ResultValue, the error or reason of other results, or the name of OtherResult.
	Text string
}
