package contract_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"changerelay/pkg/contract"
)

func TestValidate_ValidateNamesEachField(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name string
		edit func(*contract.Event)
		want []string
	}{
		{name: "a whole event keeps the contract", edit: func(*contract.Event) {}},
		{
			name: "an id is needed",
			edit: func(e *contract.Event) { e.ID = "" },
			want: []string{"id: is empty"},
		},
		{
			name: "an id has 128 characters at most",
			edit: func(e *contract.Event) { e.ID = strings.Repeat("x", 129) },
			want: []string{"id: has 129 characters, more than 128"},
		},
		{
			name: "an id of 128 characters of two bytes is fine",
			edit: func(e *contract.Event) { e.ID = strings.Repeat("é", 128) },
		},
		{
			name: "an aggregate id is needed",
			edit: func(e *contract.Event) { e.AggregateID = "" },
			want: []string{"subject: is empty"},
		},
		{
			name: "characters beyond 16 bits count twice, as the service counts them",
			edit: func(e *contract.Event) { e.AggregateID = strings.Repeat("🧾", 65) },
			want: []string{"subject: has 130 characters, more than 128"},
		},
		{
			name: "text is UTF-8",
			edit: func(e *contract.Event) { e.AggregateID = "a\xffb" },
			want: []string{"subject: is not valid UTF-8"},
		},
		{
			name: "the replacement character itself is text",
			edit: func(e *contract.Event) { e.AggregateID = "a\ufffdb" },
		},
		{
			name: "text has no control characters",
			edit: func(e *contract.Event) { e.Type = "Order\nPlaced" },
			want: []string{"type: has the character U+000A, which CloudEvents does not allow"},
		},
		{
			name: "text has no noncharacters",
			edit: func(e *contract.Event) { e.Type = "Order\ufffe" },
			want: []string{"type: has the character U+FFFE, which CloudEvents does not allow"},
		},
		{
			name: "a property has 32 KiB at most, however few characters that is",
			edit: func(e *contract.Event) { e.Source = strings.Repeat("é", 16<<10+1) },
			want: []string{"source: has 32770 bytes, more than 32768"},
		},
		{
			name: "all properties together have 64 KiB at most",
			edit: func(e *contract.Event) {
				e.Version = contract.Version{}
				e.Position = contract.StreamPosition(1, 1, strings.Repeat("82", 16_000))
				e.Sequence = contract.SequenceOf(e.Version, e.Position)
			},
			want: []string{"properties: take about 66238 bytes, more than 65536"},
		},
		{
			name: "an operation is one of five",
			edit: func(e *contract.Event) { e.Operation = "upsert" },
			want: []string{`operation: is "upsert", not one of insert, update, replace, delete, snapshot`},
		},
		{
			name: "a hostile value is quoted in part",
			edit: func(e *contract.Event) { e.Operation = contract.Operation(strings.Repeat("\n", 1<<20)) },
			want: []string{`operation: is "` + strings.Repeat(`\n`, 64) + `"…, not one of insert, update, replace, delete, snapshot`},
		},
		{
			name: "a position is needed",
			edit: func(e *contract.Event) { e.Position = "" },
			want: []string{"position: is empty"},
		},
		{
			name: "a position has a token",
			edit: func(e *contract.Event) { e.Position = "6921d1e100000001." },
			want: []string{"position: is not 16 hex digits, a dot and a token"},
		},
		{
			name: "a position's cluster time is lower-case hex",
			edit: func(e *contract.Event) { e.Position = "6921D1E100000001.82" },
			want: []string{"position: has a cluster time that is not lower-case hex"},
		},
		{
			name: "a position's token is upper-case hex",
			edit: func(e *contract.Event) { e.Position = "6921d1e100000001.82a0" },
			want: []string{"position: has a token that is not upper-case hex"},
		},
		{
			name: "a position is a property too",
			edit: func(e *contract.Event) { e.Position = contract.StreamPosition(1, 1, strings.Repeat("8", 32<<10)) },
			want: []string{"position: has 32785 bytes, more than 32768"},
		},
		{
			name: "a sequence is the version",
			edit: func(e *contract.Event) { e.Sequence = "0000000000000000041" },
			want: []string{`sequence: is "0000000000000000041", but version and position make it "0000000000000000042"`},
		},
		{
			name: "a sequence is the position where there is no version",
			edit: func(e *contract.Event) {
				e.Position, e.Version = contract.StreamPosition(1, 2, "82"), contract.Version{}
				e.Sequence = "0000000100000001.82"
			},
			want: []string{`sequence: is "0000000100000001.82", but version and position make it "0000000100000002.82"`},
		},
		{
			name: "a version counts from 0",
			edit: func(e *contract.Event) { e.Version = contract.VersionOf(-1) },
			want: []string{"aggregateversion: is -1, below 0"},
		},
		{
			name: "a term counts from 0",
			edit: func(e *contract.Event) { e.Term = -1 },
			want: []string{"term: is -1, below 0"},
		},
		{
			name: "a time has a year of four digits",
			edit: func(e *contract.Event) { e.Time = time.Date(10_000, 1, 1, 0, 0, 0, 0, time.UTC) },
			want: []string{"time: is outside the years 0000 to 9999"},
		},
		{
			name: "a time of the year 0 in UTC is the earliest",
			edit: func(e *contract.Event) { e.Time = time.Date(0, 1, 1, 0, 0, 0, 0, time.FixedZone("", 3600)) },
			want: []string{"time: is outside the years 0000 to 9999"},
		},
		{
			name: "data has a known content type",
			edit: func(e *contract.Event) { e.ContentType = "text/plain" },
			want: []string{`contentType: is "text/plain", not application/json or application/bson`},
		},
		{
			name: "data has a content type",
			edit: func(e *contract.Event) { e.ContentType = "" },
			want: []string{"contentType: is empty, but there is data"},
		},
		{
			name: "a content type has data",
			edit: func(e *contract.Event) { e.Data = nil },
			want: []string{"body: is empty, but the content type is application/json"},
		},
		{
			name: "a malformed trace context holds nothing up",
			edit: func(e *contract.Event) { e.TraceParent = "\r\n" },
		},
		{
			name: "every problem is reported at once",
			edit: func(e *contract.Event) { *e = contract.Event{Term: -1} },
			want: []string{
				"id: is empty", "subject: is empty", "source: is empty", "type: is empty",
				`operation: is "", not one of insert, update, replace, delete, snapshot`,
				"position: is empty", "term: is -1, below 0",
			},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			e := newEvent()
			tt.edit(&e)
			checkProblems(t, e.Validate(), tt.want...)
			_, err := contract.Encode(e, contract.EncodeOptions{})
			checkProblems(t, err, tt.want...)
		})
	}
}

func TestValidate_AProblemIsAFieldError(t *testing.T) {
	t.Parallel()
	e := newEvent()
	e.ID = ""
	var field *contract.FieldError
	if !errors.As(e.Validate(), &field) || field.Field != "id" || field.Problem != "is empty" {
		t.Errorf("got %#v, want the field id and the problem that it is empty", field)
	}
}

func TestValidate_SourceIsAURIReference(t *testing.T) {
	t.Parallel()
	tests := []struct{ name, database, collection, want string }{
		{"plain names stay as they are", "shop", "events", "/shop/events"},
		{"a slash inside a name is not a separator", "shop", "a/b", "/shop/a%2Fb"},
		{"spaces and percent signs are escaped", "my shop", "100%", "/my%20shop/100%25"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if got := contract.Source(tt.database, tt.collection); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}
