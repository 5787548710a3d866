package app_test

import (
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"

	"changerelay/pkg/contract"
	"changerelay/services/projector/internal/projection"
	"changerelay/services/projector/internal/sandboxtest"
)

// documented are the projections of the example in docs/projections.md that holds a text.
func documented(t *testing.T, text string) projection.Projections {
	t.Helper()
	page, err := os.ReadFile("../../../../docs/projections.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, block := range strings.Split(string(page), "```yaml\n")[1:] {
		block, _, _ = strings.Cut(block, "```")
		if !strings.Contains(block, text) {
			continue
		}
		if !strings.HasPrefix(block, "projections:") {
			block = "projections:\n" + block
		}
		projections, err := projection.Parse("docs/projections.md", []byte(block))
		if err != nil {
			t.Fatal(err)
		}
		return projections
	}
	t.Fatalf("docs/projections.md has no example with %q", text)
	return nil
}

// The example of docs/projections.md does what the page says, whether events come one
// by one, in a batch, or again.
func TestConditions_TheExampleDoesWhatItSays(t *testing.T) {
	t.Parallel()
	client, database := servers.Mongo(t, nil)
	p := start(t, configured(t, "conditions", database), documented(t, "name: accounts"))
	db := client.Database(database)
	shown := func() string {
		d := sandboxtest.Documents(t, db, "accounts_current")["a"]
		if d == nil {
			return "none"
		}
		return fmt.Sprintf("balance %v, payments %v, largest %v", d.Lookup("balance"), d.Lookup("payments"), d.Lookup("largest"))
	}
	dealtWith := func(n int64) {
		t.Helper()
		until(t, "the events are dealt with", func() bool { return p.Status().Completed >= n })
	}
	send(t, "conditions",
		event("a", 1, "FeeCharged", `{"amount":1}`), // there is no balance
		event("a", 2, "PaymentReceived", `{"amount":30}`),
		event("a", 3, "PaymentReceived", `{"amount":0}`),
		event("a", 4, "PaymentReceived", `{"amount":20}`),
		event("a", 5, "AccountClosed", `{}`), // there is a balance
		event("a", 6, "FeeCharged", `{"amount":49}`),
		event("a", 7, "FeeCharged", `{"amount":2}`), // there is not enough
	)
	dealtWith(7)
	const want = `balance {"$numberInt":"1"}, payments {"$numberInt":"2"}, largest {"$numberInt":"30"}`
	if got := shown(); got != want {
		t.Errorf("after 7 events: got %s, want %s", got, want)
	}
	if got, err := ask(t.Context(), p, "aggregate=a&version=7"); err != nil || got != http.StatusOK {
		t.Errorf("wait for the event that changed nothing: got %d and %v, want it readable", got, err)
	}
	send(t, "conditions", event("a", 6, "FeeCharged", `{"amount":49}`), event("a", 7, "FeeCharged", `{"amount":1}`))
	dealtWith(9)
	if got := shown(); got != want {
		t.Errorf("after two that come again: got %s, want %s", got, want)
	}
	send(t, "conditions", event("a", 8, "FeeCharged", `{"amount":1}`), event("a", 9, "AccountClosed", `{}`), event("a", 10, "PaymentReceived", `{"amount":-1}`))
	dealtWith(12)
	if got := shown(); got != "none" {
		t.Errorf("after the account is closed: got %s, want no document", got)
	}
}

// What takes too much of a document halts its aggregate, and the halt names projection,
// event type, field and bound; other aggregates flow.
func TestConditions_WhatIsBeyondABoundHaltsTheAggregateAndSaysSo(t *testing.T) {
	t.Parallel()
	client, database := servers.Mongo(t, nil)
	projections, err := projection.Parse("test.yaml", []byte(`projections:
- name: orders
  collection: orders
  on:
    Happened:
      inc: {events: 1}
    Counted:
      set: {pairs: 'let l = 1..state.events * 1000; all(l, all(l, true))'}
`))
	if err != nil {
		t.Fatal(err)
	}
	p := start(t, configured(t, "exceeding", database), projections)
	send(t, "exceeding", event("a", 1, "Happened", `{}`), event("a", 2, "Happened", `{}`), event("a", 3, "Counted", `{}`), event("b", 1, "Happened", `{}`))
	until(t, "they are dealt with", func() bool { return p.Status().Completed >= 4 })
	db := client.Database(database)
	const want = `projection "orders", event type "Counted": set "pairs": takes more than 3000000 steps`
	halts := sandboxtest.Documents(t, db, "halted_aggregates")
	if got, _ := halts["a"].Lookup("reason").StringValueOK(); len(halts) != 1 || got != want {
		t.Errorf("halts: got %v, want that of a with %s", halts, want)
	}
	orders := sandboxtest.Documents(t, db, "orders")
	if a, b := orders["a"].Lookup("events"), orders["b"].Lookup("events"); a.AsInt64() != 2 || b.AsInt64() != 1 {
		t.Errorf("documents: got %v, want what came before the halt, and all of the other", orders)
	}
}

// So does that of an event that changes several documents.
func TestForEach_TheExampleDoesWhatItSays(t *testing.T) {
	t.Parallel()
	client, database := servers.Mongo(t, nil)
	p := start(t, configured(t, "articles", database), documented(t, "name: articles"))
	db := client.Database(database)
	events := []contract.Event{
		event("a", 1, "OrderPlaced", `{"lines":[{"sku":"tea","quantity":2,"tags":["hot","leaf"]},{"sku":"cup","quantity":1},{"sku":"tea","quantity":3,"tags":["leaf","green"]},{"sku":"pot","quantity":0}]}`),
		event("a", 2, "OrderPlaced", `{"lines":[]}`),
		event("a", 3, "OrderPlaced", `{"lines":[{"sku":"cup","quantity":0.5},{"sku":"cup","quantity":0.25}]}`),
		event("a", 4, "ArticleRenamed", `{"sku":"cup","title":"Mug"}`),
		event("b", 1, "OrderPlaced", `{"lines":[{"sku":"tea","quantity":5}]}`),
	}
	send(t, "articles", events...)
	until(t, "they are dealt with", func() bool { return p.Status().Completed >= 5 })
	send(t, "articles", events...)
	until(t, "what comes again is dealt with", func() bool { return p.Status().Completed >= 10 })
	send(t, "articles", event("a", 5, "OrderPlaced", `{"lines":[{"sku":"cup","quantity":1},{"sku":"gone"}]}`))
	until(t, "what cannot be applied is dealt with", func() bool { return p.Status().Completed >= 11 })
	articles := sandboxtest.Documents(t, db, "articles")
	for sku, want := range map[string]string{
		"tea": `sold {"$numberInt":"10"}, lines {"$numberInt":"3"}, title , tags ["hot","leaf","green"]`,
		"cup": `sold {"$numberDouble":"1.75"}, lines {"$numberInt":"3"}, title "Mug", tags []`,
	} {
		d := articles[sku]
		if got := fmt.Sprintf("sold %v, lines %v, title %v, tags %v", d.Lookup("sold"), d.Lookup("lines"), d.Lookup("title"), d.Lookup("tags")); got != want {
			t.Errorf("%s:\n got %s\nwant %s", sku, got, want)
		}
	}
	halts := sandboxtest.Documents(t, db, "halted_aggregates")
	const reason = `projection "articles", event type "OrderPlaced": forEach, element 1: when: item.quantity is missing`
	if got, _ := halts["a"].Lookup("reason").StringValueOK(); len(articles) != 2 || !strings.HasPrefix(got, reason) {
		t.Errorf("got %d articles, and halt %s, want two, and %s", len(articles), got, reason)
	}
}
