package sandbox_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
	"go.mongodb.org/mongo-driver/v2/bson"

	"changerelay/services/sandbox"
	"changerelay/services/sandbox/internal/chromium"
)

// hostile is data that would run a script in a page that took it for HTML.
const hostile = `<img src=x onerror="document.title='taken over'"><script>document.title='taken over'</script>`

// filled fills a form of the page and sends it off.
func filled(t *testing.T, b *chromium.Browser, form, fields string) {
	t.Helper()
	b.Run(t, `(() => { const form = document.getElementById("`+form+`");
		for (const [name, value] of Object.entries(`+fields+`)) form.elements[name].value = value;
		form.requestSubmit(); })()`)
}

// namesTables holds what a screen reader is told of the page's tables against what
// they should be called. All that are shown have a name.
func namesTables(t *testing.T, b *chromium.Browser, want ...string) {
	t.Helper()
	tree, err := json.Marshal(b.Call(t, "Accessibility.getFullAXTree", nil))
	must(t, err)
	var page struct {
		Nodes []struct {
			Ignored    bool
			Role, Name struct{ Value any }
		}
	}
	must(t, json.Unmarshal(tree, &page))
	var got []string
	for _, node := range page.Nodes {
		if node.Role.Value == "table" && !node.Ignored {
			got = append(got, fmt.Sprint(node.Name.Value))
		}
	}
	for _, name := range want {
		if !slices.Contains(got, name) {
			t.Errorf("a screen reader is told of the tables %q, want %q among them", got, name)
		}
	}
	if slices.Contains(got, "") {
		t.Errorf("a screen reader is told of the tables %q, want a name for each", got)
	}
}

// TestChromium_PeopleLookAndTry drives the page as somebody with a narrow window
// does, while clients write.
func TestChromium_PeopleLookAndTry(t *testing.T) {
	t.Parallel()
	s := running(t, sandbox.Config{})
	b := chromium.Open(t, s.URL()+"/", 360)
	b.Until(t, `document.getElementById("sentence")?.textContent.includes("No client is connected")`)

	_, err := database(t, s).Collection("things").InsertOne(t.Context(), bson.D{
		{Key: "_id", Value: "1"}, {Key: hostile, Value: hostile}, {Key: "n", Value: int64(9007199254740993)},
	})
	must(t, err)
	sendAll(t, client(t, s), hostile, &azservicebus.Message{
		Subject: new(hostile), Body: []byte(hostile), ApplicationProperties: map[string]any{hostile: hostile},
	})
	b.Until(t, `document.querySelector("#collections a")?.textContent === "test.things"`)
	b.Until(t, `document.getElementById("sentence").textContent.includes("to MongoDB and")`)

	b.Run(t, `document.querySelector("#collections a").click()`)
	b.Until(t, `document.querySelector("#found pre")`)
	if got := b.Text(t, "#found pre"); !strings.Contains(got, "9007199254740993") || !strings.Contains(got, "<script>") {
		t.Errorf("got document %s, want its number in full and its text as it is", got)
	}
	b.Run(t, `location.hash = "#messages?" + new URLSearchParams({entity: "`+projector+`"})`)
	b.Until(t, `document.querySelector("#peeked details")`)
	b.Run(t, `document.querySelector("#peeked details").open = true`)
	if got := b.Text(t, "#peeked pre"); got != hostile {
		t.Errorf("got body %s, want it as it was sent", got)
	}
	b.Run(t, `location.hash = "#sessions?" + new URLSearchParams({entity: "`+projector+`"})`)
	b.Until(t, `document.querySelector("#listed a")`)

	filled(t, b, "insert", `{namespace: "test.things", document: '{"_id": "2"}'}`)
	b.Until(t, `document.getElementById("insert-note").textContent.includes('_id "2"')`)
	filled(t, b, "send", `{entity: "changes", message: '{"session_id": "b", "body": "by hand"}'}`)
	b.Until(t, `document.getElementById("send-note").textContent.includes("Sent to changes")`)
	filled(t, b, "insert", `{namespace: "test.things", document: '{"_id": "2"}'}`)
	b.Until(t, `document.getElementById("insert-note").textContent.includes("E11000") && document.getElementById("insert-note").classList.contains("bad")`)
	if docs, messages := lookAt(t, s, nil).Documents, peek(t, s, observer, nil).Messages; len(docs) != 2 || len(messages) != 2 {
		t.Errorf("got %d documents and %d messages, want two each", len(docs), len(messages))
	}

	filled(t, b, "start", `{fault: '{"kind": "servicebus.throttle", "path": "changes"}'}`)
	b.Until(t, `document.querySelector("#active button")`)
	answered[struct{}](t, s, http.StatusServiceUnavailable, http.MethodPost, "/messages?entity=changes", `{"session_id":"b"}`)
	namesTables(t, b, "Collections", "Queues, topics and subscriptions", "Sessions", "Faults under way", "Open cursors",
		"Traffic of queues, topics and subscriptions")
	b.Run(t, `document.querySelector("#active button").click()`)
	b.Until(t, `!document.querySelector("#active button")`)
	filled(t, b, "enter", `{world: "standard"}`)
	b.Until(t, `document.getElementById("present-world").textContent.includes("standard")`)
	s.SetWorld(sandbox.World{})

	if wide := b.Run(t, "document.documentElement.scrollWidth"); wide != 360.0 {
		t.Errorf("got a page %v px wide in a window of 360, want it to fit", wide)
	}
	if title := b.Run(t, "document.title"); title != "Sandbox" {
		t.Errorf("got title %q: data has run as a script", title)
	}
	for _, complaint := range b.Complaints {
		if !strings.Contains(complaint, "status of 400") { // that of the insert that was to fail
			t.Errorf("the browser complains: %s", complaint)
		}
	}
}

// TestChromium_NothingIsReplacedWhileOneLooks selects a row, focuses a link and
// opens a message: all of that stays while the numbers change.
func TestChromium_NothingIsReplacedWhileOneLooks(t *testing.T) {
	t.Parallel()
	s := running(t, sandbox.Config{})
	bus := client(t, s)
	sendAll(t, bus, "a", &azservicebus.Message{Body: []byte("1")})
	_, err := database(t, s).Collection("things").InsertOne(t.Context(), bson.D{})
	must(t, err)
	b := chromium.Open(t, s.URL()+"/#messages?entity="+observer, 1200)
	b.Until(t, `document.querySelector("#peeked details") && document.querySelector("#collections td a")`)
	b.Run(t, `(() => {
		document.querySelector("#peeked details").open = true;
		window.focused = document.querySelector("#entities a");
		focused.focus();
		window.chosen = document.querySelector("#collections td");
		getSelection().selectAllChildren(chosen);
	})()`)
	sendAll(t, bus, "a", &azservicebus.Message{Body: []byte("2")})
	_, err = database(t, s).Collection("more").InsertOne(t.Context(), bson.D{})
	must(t, err)
	b.Until(t, `document.querySelector("#entities").innerText.includes("observer\t2")`)
	for what, expression := range map[string]string{
		"the focus":        `document.activeElement === focused && focused.isConnected`,
		"the selection":    `getSelection().toString().includes("test.things") && chosen.isConnected`,
		"the open message": `document.querySelector("#peeked details").open && document.querySelectorAll("#peeked details").length === 1`,
	} {
		if b.Run(t, expression) != true {
			t.Errorf("%s is gone after the numbers have changed", what)
		}
	}
	if rows := b.Run(t, `document.querySelectorAll("#collections tbody tr").length`); rows != 1.0 {
		t.Errorf("got %v rows in the table with the selection, want it to wait", rows)
	}
	b.Run(t, `getSelection().removeAllRanges()`)
	b.Until(t, `document.querySelectorAll("#collections tbody tr").length === 2`)
	b.Until(t, `document.querySelector("#entities").innerText.includes("observer\t2")`)
	if len(b.Complaints) > 0 {
		t.Errorf("the browser complains: %s", b.Complaints)
	}
}

// TestChromium_WhoeverSaysWhoTheyAreMayLook fills the page's own fields.
func TestChromium_WhoeverSaysWhoTheyAreMayLook(t *testing.T) {
	t.Parallel()
	s := running(t, sandbox.Config{Accounts: strings.NewReader(pageAccounts), CheckSAS: true})
	answer := func(r request) {
		if status, _, text := r.send(t, s); status != http.StatusCreated {
			t.Fatalf("got status %d and %s, want 201", status, text)
		}
	}
	answer(request{method: "POST", path: things, body: `{"_id": "shown"}`, user: "root", password: "secret"})
	answer(request{method: "POST", path: toChanges, body: `{"session_id": "a", "body": "shown"}`, user: "RootManageSharedAccessKey", password: "SAS_KEY_VALUE"})

	b := chromium.Open(t, s.URL()+"/#documents?namespace=test.things", 360)
	b.Until(t, `document.getElementById("found-note")?.textContent.includes("requires authentication")`)
	b.Run(t, `for (const [id, value] of Object.entries({user: "local", password: "secret", "auth-source": "test"}))
		document.getElementById(id).value = value`)
	b.Run(t, `document.getElementById("find").requestSubmit()`)
	b.Until(t, `document.querySelector("#found pre")?.textContent.includes("shown")`)
	filled(t, b, "enter", `{world: "standard"}`)
	b.Until(t, `document.getElementById("enter-note").textContent !== ""`)
	if got := s.World().Name; got != "standard" {
		t.Errorf("got world %s, want the one that a user entered", got)
	}
	s.SetWorld(sandbox.World{})
	b.Run(t, `document.getElementById("key").value = "RootManageSharedAccessKey"; document.getElementById("secret").value = "SAS_KEY_VALUE"`)
	b.Run(t, `location.hash = "#messages?entity=`+observer+`"`)
	b.Until(t, `document.querySelector("#peeked pre")?.textContent.includes("shown")`)
}
