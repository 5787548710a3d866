package liars

import (
	"slices"

	"changerelay/services/e2e/internal/campaign/mutation/guard"
	"changerelay/services/e2e/internal/check/expect"
	"changerelay/services/e2e/internal/check/witness"
)

// Lie is one relay that lies.
type Lie struct {
	Name string
	// Change is the place that is changed. No test is named: the judge is the test.
	Change guard.Guard
	// Documents says what a source in documents mode shows; nil where documents are events.
	Documents *expect.Images
	// Skips says that a projection goes on without what it cannot apply.
	Skips bool
	// Repairs says that operators repair read models, in a campaign with faults.
	Repairs bool
	// Finds is what the judge must find, among what else follows from it.
	Finds []string
}

const (
	encoder = "pkg/contract/encode.go"
	sender  = "services/publisher/internal/servicebus/topic.go"
	decider = "services/projector/internal/projection/declared.go"
	model   = "services/projector/internal/readmodel/model.go"
	settler = "services/projector/internal/session/settle.go"
)

// Documents whose updates show them as they were, and as they are when looked up.
var (
	shown    = &expect.Images{Full: expect.Required, Before: true}
	lookedUp = &expect.Images{Full: expect.LookedUp, Before: true}
)

// truths are the relay as it is, in all that some lies are tried in.
func truths(of []Lie) []Lie {
	all := []Lie{
		{Name: "the relay as it is"},
		{Name: "the same in documents mode", Documents: shown},
		{Name: "the same with documents that are looked up", Documents: lookedUp},
		{Name: "the same with events that a projection goes on without", Skips: true},
	}
	if slices.ContainsFunc(of, func(l Lie) bool { return l.Repairs }) {
		all = append(all, Lie{Name: "the same with operators who repair read models", Repairs: true})
	}
	return all
}

// Lies are all the lies.
func Lies() []Lie { return slices.Concat(ofEvents(), ofRemains(), ofRepairs()) }

// ofEvents are those about which events there are, and what they say.
func ofEvents() []Lie {
	return []Lie{
		{
			Name: "the projector settles one event in 400 without applying it",
			Change: guard.Guard{
				File: decider,
				Cut:  "\tif !follows {\n",
				With: "\tif !follows || c.ID[0] == 'A' && c.ID[1] >= 'A' && c.ID[1] < 'K' {\n",
			},
			Finds: []string{witness.LostBeforeReadModel},
		},
		{
			Name: "the projector applies one event in 100 twice",
			Change: guard.Guard{
				File: decider,
				Cut:  "\t\tif len(operands) > 0 {\n",
				With: "\t\tif c := env.change; section.operator == \"$inc\" && c.ID[0] == 'A' && c.ID[1] < 'n' {\n\t\t\toperands[0].Value = 2\n\t\t}\n" +
					"\t\tif len(operands) > 0 {\n",
			},
			Finds: []string{witness.AppliedTwice, witness.WrongKeyed},
		},
		{
			Name: "one event in 16 changes the document of another customer",
			Change: guard.Guard{
				File: decider,
				Cut:  "\tfor _, section := range r.sections {\n",
				With: "\tif c := env.change; p.keyed && c.ID[0] >= 'A' && c.ID[0] < 'E' {\n\t\tw.ID = \"nobody\"\n\t}\n\tfor _, section := range r.sections {\n",
			},
			Finds: []string{witness.WrongKeyed},
		},
		{
			Name: "every event is dated 1970",
			Change: guard.Guard{
				File: encoder,
				Cut:  "e.Time.UTC().Format(time.RFC3339Nano)",
				With: "time.Unix(0, 0).UTC().Format(time.RFC3339Nano)",
			},
			Finds: []string{witness.UnlikeSource, witness.WrongShadow, witness.Misplaced},
		},
		{
			Name: "a field of the data is dropped",
			Change: guard.Guard{
				File: "services/publisher/internal/mapping/json.go",
				Cut:  "if field.drops() {",
				With: "if field.drops() || string(e.key) == \"tracking\" {",
			},
			Finds: []string{witness.UnlikeSource},
		},
		{
			Name: "a property of the message is dropped",
			Change: guard.Guard{
				File: encoder,
				Cut:  "\t\tSubject:      e.Type,\n",
			},
			Finds: []string{witness.UnlikeSource},
		},
		{
			Name: "beside the first event of each batch a message of another source is sent",
			Change: guard.Guard{
				File: sender,
				Cut:  "\taccepted := 0\n\tfor accepted < len(messages) {",
				With: "\tother := []contract.Message{messages[0]}\n\tother[0].ID, other[0].Properties = messages[0].ID+\"x\", make(map[string]any)\n" +
					"\tfor name, v := range messages[0].Properties {\n\t\tother[0].Properties[name] = v\n\t}\n" +
					"\tother[0].Properties[\"cloudEvents_source\"], other[0].Properties[\"cloudEvents_type\"] = \"/other\", \"Other\"\n" +
					"\t_, _ = t.sendSome(ctx, other)\n\taccepted := 0\n\tfor accepted < len(messages) {",
			},
			Finds: []string{witness.Foreign},
		},
		{
			Name: "inserts are sent as a copy's, and from one place",
			Change: guard.Guard{
				File: encoder,
				Cut:  "\tp[prefix+attrPosition] = string(e.Position)\n",
				With: "\tp[prefix+attrPosition] = \"0000000500000001.82\"\n\tif e.Operation == Insert {\n\t\tp[prefix+attrOperation] = string(Snapshot)\n\t}\n",
			},
			Finds: []string{witness.Copied},
		},
		{
			Name: "every event stands at one place",
			Change: guard.Guard{
				File: encoder,
				Cut:  "\tp[prefix+attrPosition] = string(e.Position)\n",
				With: "\tp[prefix+attrPosition] = \"0000000500000001.82\"\n",
			},
			Finds: []string{witness.PositionsBack},
		},
		{
			Name: "the broker may drop messages after an hour",
			Change: guard.Guard{
				File: "services/publisher/internal/servicebus/message.go",
				Cut:  "\t\tProperties:            &one.properties,\n",
				With: "\t\tHeader: &azservicebus.AMQPAnnotatedMessageHeader{TTL: 3600e9},\n\t\tProperties:            &one.properties,\n",
			},
			Finds: []string{witness.Mortal},
		},
		{
			Name: "some events are sent as another aggregate's",
			Change: guard.Guard{
				File: "services/publisher/internal/mapping/events.go",
				Cut:  "\tevent.AggregateID = id\n",
				With: "\tif n := len(id) - 1; n >= 0 && id[n] == '7' && len(document)%8 == 0 {\n\t\tid = id[:n] + \"8\"\n\t}\n\tevent.AggregateID = id\n",
			},
			Finds: []string{witness.LostBeforeTopic, witness.UnlikeSource},
		},
		{
			Name: "one event comes under two ids",
			Change: guard.Guard{
				File: sender,
				Cut:  "\taccepted := 0\n\tfor accepted < len(messages) {",
				With: "\tagain := []contract.Message{messages[0]}\n\tagain[0].ID += \"x\"\n\t_, _ = t.sendSome(ctx, again)\n\taccepted := 0\n\tfor accepted < len(messages) {",
			},
			Finds: []string{witness.SeveralIDs},
		},
		{
			Name: "the checkpoint is never saved",
			Change: guard.Guard{
				File: "services/publisher/internal/mongostate/checkpoint.go",
				Cut:  "\tmine := append(slices.Clip(held),\n\t\tbson.E{Key: \"saves\"",
				With: "\tif term > 0 {\n\t\treturn nil\n\t}\n\tmine := append(slices.Clip(held),\n\t\tbson.E{Key: \"saves\"",
			},
			Finds: []string{witness.CheckpointBehind},
		},
		{
			Name: "read documents keep the mark of a halt",
			Change: guard.Guard{
				File: model,
				Cut:  "\tif w.By != \"\" {",
				With: "\tif w.Halted == nil {\n\t\td = append(d, bson.E{Key: \"halted\", Value: bson.D{{Key: \"reason\", Value: \"none\"}}})\n\t}\n\tif w.By != \"\" {",
			},
			Finds: []string{witness.MarkedHalted},
		},
		{
			Name:      "deletions of documents are not sent",
			Documents: shown,
			Change: guard.Guard{
				File: "services/publisher/internal/mapping/documents.go",
				Cut:  "\tcase insert, update, replace, remove, snapshot:\n",
				With: "\tcase insert, update, replace, snapshot:\n",
			},
			Finds: []string{witness.LostBeforeTopic, witness.LostBeforeReadModel},
		},
		{
			Name:      "updates forget the fields that are gone",
			Documents: shown,
			Change: guard.Guard{
				File: "services/publisher/internal/mapping/documents.go",
				Cut:  "\tw.list(\"removed\", paths, removedPath)\n",
			},
			Finds: []string{witness.UnlikeSource},
		},
		{
			Name:      "documents that are looked up are older than their change",
			Documents: lookedUp,
			Change: guard.Guard{
				File: "services/publisher/internal/mapping/documents.go",
				Cut:  "\t\tw.document(\"document\", c.document)\n",
				With: "\t\tif c.document = c.document[:len(c.document):len(c.document)]; c.before != nil {\n\t\t\tc.document = c.before\n\t\t}\n" +
					"\t\tw.document(\"document\", c.document)\n",
			},
			Finds: []string{witness.UnlikeSource, witness.WrongShadow, witness.WrongDocuments},
		},
		{
			Name:      "the projector passes over one change of a document in 64",
			Documents: shown,
			Change: guard.Guard{
				File: decider,
				Cut:  "\tif !follows {\n",
				With: "\tif !follows || c.ID[0] == 'A' {\n",
			},
			Finds: []string{witness.LostBeforeReadModel},
		},
	}
}
