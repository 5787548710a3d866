package scenario

import (
	"context"
	"fmt"
	"regexp"
	"testing"

	"changerelay/services/e2e/internal/harness/chromium"
	"changerelay/services/e2e/internal/harness/poll"
	"changerelay/services/e2e/internal/harness/up"
)

// controls are what a page has for the keyboard, in the order of its text: what is
// shown, can be used, and is not in a closed part.
const controls = `[...document.querySelectorAll("a[href], button, input, select, textarea, summary, [tabindex]")]
	.filter((one) => one.checkVisibility() && !one.disabled && one.tabIndex >= 0)`

// walk presses Tab until the focus leaves the page, and then goes back. Each control is
// reached in the order in which one reads, shows that it has the focus, is in sight,
// and has a name for a screen reader.
func walk(t *testing.T, page string, b *chromium.Browser) {
	t.Helper()
	b.Run(t, `window.walked = `+controls+`; document.body.tabIndex = -1; document.body.focus(); document.body.removeAttribute("tabindex")`)
	count := int(b.Run(t, `walked.length`).(float64))
	if count == 0 {
		t.Errorf("%s: got no control, want links at least", page)
	}
	for i := range count {
		b.Press(t, "Tab", false)
		at, _ := b.Run(t, `walked.indexOf(document.activeElement)`).(float64)
		if int(at) != i {
			t.Fatalf("%s: Tab number %d is on number %d of the controls (%v), want the next", page, i+1, int(at)+1, b.Run(t, `document.activeElement.outerHTML`))
		}
		what := b.Run(t, `document.activeElement.outerHTML`)
		if b.Run(t, `(() => { const style = getComputedStyle(document.activeElement); return style.outlineStyle !== "none" && parseFloat(style.outlineWidth) >= 1; })()`) != true {
			t.Errorf("%s: one cannot see that the focus is on %v", page, what)
		}
		if b.Run(t, `(() => { const { top, bottom, left, right } = document.activeElement.getBoundingClientRect();
			return bottom > 0 && top < innerHeight && left >= 0 && right <= innerWidth; })()`) != true {
			t.Errorf("%s: %v has the focus and is out of sight", page, what)
		}
		if b.Name(t) == "" {
			t.Errorf("%s: %v has no name for a screen reader", page, what)
		}
	}
	for i := count - 2; i >= 0; i-- {
		b.Press(t, "Tab", true)
		if at := b.Run(t, `walked.indexOf(document.activeElement)`); at != float64(i) {
			t.Fatalf("%s: the way back with Shift and Tab is on number %v, want %d", page, at, i)
		}
	}
}

// shows waits for an expression to be true of the page, or of the one that follows it.
func shows(ctx context.Context, t *testing.T, b *chromium.Browser, expression string) {
	t.Helper()
	if err := poll.Until(ctx, expression, func(context.Context) (bool, string) {
		value, err := b.Try(expression)
		return err == nil && value == true, fmt.Sprint(value, err)
	}); err != nil {
		t.Fatal(err)
	}
}

// TestPages_FitANarrowWindowAndNeedNoMouse opens the page of all processes, and by the
// keyboard those that it links, as they are at work.
func TestPages_FitANarrowWindowAndNeedNoMouse(t *testing.T) {
	t.Parallel()
	b := chromium.Open(t, "about:blank", 360) // or there is none, and nothing else is started
	ctx, stop := context.WithCancel(within(t))
	defer stop()
	var out output
	ended := make(chan error, 1)
	go func() { ended <- up.Run(ctx, upConfig(t), &out) }()
	clientOf(ctx, t, &out)
	overview := regexp.MustCompile(`(?m)^page of all +(\S+)$`).FindStringSubmatch(out.String())[1]
	loaded := map[string]string{
		"sandbox":     `document.querySelector("#collections a") && document.querySelector("#entities a") && document.querySelector("#kinds option") !== null`,
		"publisher-1": `document.getElementById("said")?.textContent.startsWith("Well")`,
		"projector-1": `document.getElementById("said")?.textContent.startsWith("Well")`,
	}
	for _, page := range []string{"all", "sandbox", "publisher-1", "projector-1"} {
		b.Go(t, overview)
		shows(ctx, t, b, `document.querySelector("[data-process]") !== null`)
		if page != "all" {
			for b.Run(t, `document.activeElement.textContent`) != page {
				b.Press(t, "Tab", false)
			}
			b.Press(t, "Enter", false)
			shows(ctx, t, b, loaded[page])
		}
		walk(t, page, b)
		if over := b.Run(t, `document.documentElement.scrollWidth - innerWidth`); over != 0.0 {
			t.Errorf("%s: got a page %v px wider than a window of 360, want it to fit", page, over)
		}
		if page == "sandbox" {
			b.Run(t, `document.querySelector("summary").focus()`)
			b.Press(t, "Enter", false)
			shows(ctx, t, b, `document.querySelector("details").open`)
			walk(t, "sandbox with a form open", b)
		}
	}
	stop()
	if err := <-ended; err != nil {
		t.Errorf("Run = %v, want nil", err)
	}
}
