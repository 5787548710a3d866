package statuspage

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// Database runs commands of MongoDB that leave no cursor open. Whatever the
// caller did wrong is a *Refusal.
type Database interface {
	Run(ctx context.Context, who Login, command bson.Raw) (bson.Raw, error)
}

// Bounds of a page of documents.
const (
	documentsDefault = 20
	documentsMost    = 200
	skipMost         = 1 << 31
	// pageBytes bounds the documents, or bodies of messages, of one answer
	// together; the first is given whatever its size.
	pageBytes = 4 << 20
	// findTime is the maxTimeMS of a find.
	findTime = 5000
)

// documents is a page of them: JSON values or, with text=true, each as text
// that is laid out for people.
type documents struct {
	Documents []any `json:"documents"`
	// More tells that there are more behind; Skip is where they begin.
	More bool  `json:"more"`
	Skip int64 `json:"next_skip,omitempty"`
}

func (s *Server) findDocuments(r *http.Request) (int, any, error) {
	p := &parameters{r: r}
	p.onlyKnown("filter", "sort", "projection", "skip", "limit", "form", "text")
	limit := p.number("limit", documentsDefault, 1, documentsMost)
	skip := p.number("skip", 0, 0, skipMost)
	command := bson.D{{Key: "find", Value: r.PathValue("collection")}}
	for _, name := range []string{"filter", "sort", "projection"} {
		if given := p.text(name); given != "" {
			command = append(command, bson.E{Key: name, Value: p.document(name, []byte(given))})
		}
	}
	write := p.form()
	if p.err != nil {
		return 0, nil, p.err
	}
	reply, err := s.run(r, append(command,
		bson.E{Key: "skip", Value: skip}, bson.E{Key: "limit", Value: limit + 1}, bson.E{Key: "batchSize", Value: limit + 1},
		bson.E{Key: "singleBatch", Value: true}, bson.E{Key: "maxTimeMS", Value: findTime},
		bson.E{Key: "$readPreference", Value: bson.D{{Key: "mode", Value: "secondaryPreferred"}}}))
	if err != nil {
		return 0, nil, err
	}
	found, _ := reply.Lookup("cursor", "firstBatch").ArrayOK()
	values, err := found.Values()
	if err != nil {
		return 0, nil, err
	}
	return pageOf(values, skip, limit, write)
}

// pageOf keeps what fits into a page.
func pageOf(values []bson.RawValue, skip, limit int64, write func(bson.Raw) (any, error)) (int, any, error) {
	page, size := documents{Documents: []any{}}, 0
	for i, value := range values {
		if size += len(value.Value); i > 0 && size > pageBytes || int64(i) == limit {
			page.More, page.Skip = true, skip+int64(i)
			break
		}
		written, err := write(value.Document())
		if err != nil {
			return 0, nil, err
		}
		page.Documents = append(page.Documents, written)
	}
	return http.StatusOK, page, nil
}

// form is how documents are written: relaxed or canonical Extended JSON, as JSON
// values or as text.
func (p *parameters) form() func(bson.Raw) (any, error) {
	canonical, text := false, p.yes("text")
	switch form := p.text("form"); form {
	case "canonical":
		canonical = true
	case "", "relaxed":
	default:
		p.fail("form must be relaxed or canonical, and is %q", form)
	}
	return func(doc bson.Raw) (any, error) {
		if text {
			laidOut, err := bson.MarshalExtJSONIndent(doc, canonical, false, "", "  ")
			return string(laidOut), err
		}
		written, err := bson.MarshalExtJSON(doc, canonical, false)
		return json.RawMessage(written), err
	}
}

// document reads Extended JSON of either form.
func (p *parameters) document(name string, text []byte) bson.D {
	doc, err := documentOf(text)
	if err != nil {
		p.fail("%s is no document in Extended JSON: %s", name, err)
	}
	return doc
}

func documentOf(text []byte) (bson.D, error) {
	var whole json.RawMessage
	if err := json.Unmarshal(text, &whole); err != nil { // the driver reads the first value, and no further
		return nil, err
	}
	if text = bytes.TrimSpace(text); text[0] != '{' {
		return nil, wrong("it must begin with {")
	}
	doc := bson.D{}
	err := bson.UnmarshalExtJSON(text, false, &doc)
	return doc, err
}

func (s *Server) insertDocument(r *http.Request) (int, any, error) {
	p := &parameters{r: r}
	p.onlyKnown()
	text, err := bodyOf(r)
	if err != nil {
		return 0, nil, err
	}
	doc := p.document("the body", text)
	if p.err != nil {
		return 0, nil, p.err
	}
	doc, id := withID(doc)
	reply, err := s.run(r, bson.D{
		{Key: "insert", Value: r.PathValue("collection")},
		{Key: "documents", Value: bson.A{doc}},
		{Key: "writeConcern", Value: bson.D{{Key: "w", Value: "majority"}}},
	})
	if err != nil {
		return 0, nil, err
	}
	for _, failure := range [][]string{{"writeErrors", "0", "errmsg"}, {"writeConcernError", "errmsg"}} {
		if reason, ok := reply.Lookup(failure...).StringValueOK(); ok {
			return 0, nil, wrong("%s", reason)
		}
	}
	written, err := bson.MarshalExtJSON(bson.D{id}, false, false)
	return http.StatusCreated, json.RawMessage(written), err
}

// withID gives a document an id, as drivers do, and returns that.
func withID(doc bson.D) (bson.D, bson.E) {
	for _, e := range doc {
		if e.Key == "_id" {
			return doc, e
		}
	}
	id := bson.E{Key: "_id", Value: bson.NewObjectID()}
	return append(bson.D{id}, doc...), id
}

func (s *Server) run(r *http.Request, command bson.D) (bson.Raw, error) {
	raw, err := bson.Marshal(append(command, bson.E{Key: "$db", Value: r.PathValue("db")}))
	if err != nil {
		return nil, wrong("write the document as BSON: %s", err)
	}
	return s.Database.Run(r.Context(), loginOf(r), raw)
}
