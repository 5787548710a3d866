package demo

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"go.mongodb.org/mongo-driver/v2/bson"

	"changerelay/services/e2e/internal/check/report"
	"changerelay/services/e2e/internal/check/witness"
	"changerelay/services/e2e/internal/harness/orders"
)

// countCollection is where what is judged is, beside the user's own projections.
const countCollection = "demo_count"

// owners is where projectors note whose each read collection is.
const owners = "collection_owners"

// declare writes a declaration by which every event of the input counts, whatever the
// user's own make of it, and returns its file. Where the user has none, each aggregate's
// latest data is kept beside that: the projectors' default stands alone, and says nothing
// of an event with another behind it.
func (d *Demo) declare() (string, error) {
	const version, when = "event.version ?? 0", "event.time ?? nil" // what is written behind the report may have none
	rule := map[string]any{
		"inc":  map[string]any{"events": 1, "sum": version},
		"push": map[string]any{"tail": map[string]any{"value": version, "last": 64}},
		"set":  map[string]any{"id": "event.id", "type": "event.type", "time": when},
	}
	projections := []any{d.onEvery(countCollection, rule)}
	if d.cfg.Projections == "" {
		projections = append(projections, d.onEvery(witness.Latest.Collection, map[string]any{"set": map[string]any{"data": "data"}}))
	}
	// JSON is YAML, whatever characters a type has.
	text, err := json.MarshalIndent(map[string]any{"projections": projections}, "", "  ")
	path := filepath.Join(d.dir, countCollection+".yaml")
	if err == nil {
		err = os.WriteFile(path, text, 0o600)
	}
	if err != nil {
		return "", fmt.Errorf("declare what counts the events: %w", err)
	}
	return path, nil
}

// onEvery is a projection that follows every type of the input by one rule.
func (d *Demo) onEvery(name string, rule any) map[string]any {
	on := make(map[string]any)
	for _, e := range d.cfg.log.Events {
		on[e.Type] = rule
	}
	return map[string]any{"name": name, "collection": name, "on": on}
}

// unjudged says why a fault cannot be looked for; empty where it can.
func (d *Demo) unjudged(fault string) string {
	if fault == witness.WrongDocuments && d.cfg.Projections != "" {
		return "the rules are yours, and only the projector computes by them; that each event was applied once and in order is judged"
	}
	return ""
}

// documents counts the documents of the user's own projections.
func (d *Demo) documents(ctx context.Context) ([]report.Figure, error) {
	if d.cfg.Projections == "" {
		return nil, nil
	}
	var owned []struct {
		Collection string `bson:"_id"`
	}
	cursor, err := d.witness.ReadModel().Collection(owners).Find(ctx, bson.D{{Key: "feed", Value: nil}})
	if err == nil {
		err = cursor.All(ctx, &owned)
	}
	if err != nil {
		return nil, fmt.Errorf("read whose the read collections are: %w", err)
	}
	var figures []report.Figure
	for _, o := range owned {
		if o.Collection == countCollection || strings.HasPrefix(o.Collection, "$") { // the projector's own notes
			continue
		}
		n, err := d.witness.ReadModel().Collection(o.Collection).CountDocuments(ctx, bson.D{{Key: "_relay.deletedAt", Value: nil}})
		if err != nil {
			return nil, fmt.Errorf("count the documents of %s: %w", o.Collection, err)
		}
		note := ""
		if n == 0 {
			note = "does the projection name the types that the input has? " + types(d.cfg.log.Events)
		}
		figures = append(figures, report.Figure{Name: "documents in " + o.Collection, Value: float64(n), Unit: report.Count, Note: note})
	}
	return figures, nil
}

// types are the first types that events have, as a projection would name them.
func types(events []orders.Event) string {
	const most = 5
	var names []string
	for _, e := range events {
		name := strconv.Quote(e.Type)
		if slices.Contains(names, name) {
			continue
		}
		if len(names) == most {
			return strings.Join(names, ", ") + ", …"
		}
		names = append(names, name)
	}
	return strings.Join(names, ", ")
}

// excuse names in the report what the relay has set aside of the input. The judge then
// does not take it for lost; that anything is set aside is a check of its own.
func (d *Demo) excuse(ctx context.Context, r *report.Report) error {
	if d.cfg.Input == "" {
		return nil
	}
	asides, err := d.witness.Asides(ctx)
	if err != nil {
		return err
	}
	d.witness.Excuse(asides)
	for _, a := range asides {
		r.Aside = append(r.Aside, report.Aside{
			File: filepath.Base(d.cfg.Input), Line: d.cfg.log.Line(a.ID), Event: d.named(a.ID), Reason: a.Reason, Remedy: remedy(a),
		})
	}
	slices.SortStableFunc(r.Aside, func(a, b report.Aside) int { return cmp.Compare(a.Line, b.Line) })
	return nil
}

// named names the event of an id as a reader knows it.
func (d *Demo) named(id string) string {
	i := strings.LastIndexByte(id, '/')
	if i < 0 {
		return id
	}
	return fmt.Sprintf("version %s of %s", cmp.Or(strings.TrimLeft(id[i+1:], "0"), "0"), clipped(id[:i]))
}

// idShown is how many characters of an aggregate's id are shown.
const idShown = 60

func clipped(id string) string {
	if text := []rune(id); len(text) > idShown {
		return fmt.Sprintf("%s… (%d characters)", string(text[:idShown]), len(text))
	}
	return id
}

// remedy says what can be done about an event that was set aside.
func remedy(a witness.Aside) string {
	field, _, _ := strings.Cut(a.Reason, ":")
	switch {
	case a.Unsent && field == "subject":
		return "mend: FIELD_AGGREGATE_ID of the publisher names a field with another id, of at most 128 characters and none of control"
	case a.Unsent && field == "type":
		return "mend: FIELD_TYPE of the publisher names a field with another type, without characters of control"
	case a.Unsent:
		return "mend: look at it with publisher parked show, mend the document or the settings, and publisher parked replay"
	case a.Behind:
		return "mend: it waits behind an event of its aggregate that failed, and is redriven with it"
	}
	return "mend: the projection, or the event; then projector parked redrive " + quoted(aggregateOf(a.ID))
}

// quoted is an id as a shell takes it.
func quoted(id string) string {
	if strings.ContainsFunc(id, func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune("-_.:/@", r)
	}) {
		return "'" + strings.ReplaceAll(id, "'", `'\''`) + "'"
	}
	return id
}

func aggregateOf(id string) string { return id[:max(0, strings.LastIndexByte(id, '/'))] }
