package contract_test

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"

	"changerelay/pkg/contract"
)

// The AsyncAPI document, the schema and the code name the same properties, and
// call the same ones optional.
func TestAsyncAPI_TheAsyncAPIDocumentListsWhatIsWritten(t *testing.T) {
	t.Parallel()
	written, always := writtenProperties(t)
	headers := at(t, readAsyncAPI(t), "components/messages/change/headers")
	schema := at(t, readDocument(t, schemaFile), "properties/applicationProperties")
	tests := []struct {
		name      string
		got, want []string
	}{
		{"properties of the document", names(t, headers, "properties"), written},
		{"required properties of the document", listed(t, headers, "required"), always},
		{"properties of the schema", names(t, schema, "properties"), written},
		{"required properties of the schema", listed(t, schema, "required"), always},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if !slices.Equal(tt.got, tt.want) {
				t.Errorf("got\n%s\nwant\n%s", strings.Join(tt.got, "\n"), strings.Join(tt.want, "\n"))
			}
		})
	}
}

// writtenProperties returns the names of all properties that are written into
// the samples, and of those that are written into each, sorted.
func writtenProperties(t *testing.T) (written, always []string) {
	t.Helper()
	count := make(map[string]int)
	for _, sample := range samples() {
		for name := range sample.message(t).Properties {
			count[name]++
		}
	}
	written = slices.Sorted(maps.Keys(count))
	always = slices.DeleteFunc(slices.Clone(written), func(name string) bool { return count[name] < len(samples()) })
	return written, always
}

func TestAsyncAPI_EveryReferenceOfTheAsyncAPIDocumentLeadsSomewhere(t *testing.T) {
	t.Parallel()
	document := readAsyncAPI(t)
	found := references(document)
	if len(found) < 20 {
		t.Fatalf("got %d references, want at least 20", len(found))
	}
	for _, reference := range found {
		file, pointer, _ := strings.Cut(reference, "#/")
		target := document
		if file != "" {
			target = readDocument(t, filepath.Join("schema", file))
		}
		at(t, target, pointer)
	}
}

func TestAsyncAPI_APropertyOfTheAsyncAPIDocumentRefersToItsOwnSchema(t *testing.T) {
	t.Parallel()
	properties := at(t, readAsyncAPI(t), "components/messages/change/headers/properties").(map[string]any)
	for name, property := range properties {
		want := "./event.schema.json#/properties/applicationProperties/properties/" + name
		if got := at(t, property, "$ref"); got != want {
			t.Errorf("%s: got %q, want %q", name, got, want)
		}
	}
}

func TestAsyncAPI_TheAsyncAPIDocumentIsOfThisContract(t *testing.T) {
	t.Parallel()
	document := readAsyncAPI(t)
	if got, want := at(t, document, "asyncapi"), "3.0.0"; got != want {
		t.Errorf("got AsyncAPI version %q, want %q", got, want)
	}
	if got, want := at(t, document, "info/version"), contract.ContractVersion; got != want {
		t.Errorf("got version %q, want %q", got, want)
	}
}

func readAsyncAPI(t *testing.T) any {
	t.Helper()
	text, err := os.ReadFile("schema/asyncapi.yaml")
	if err != nil {
		t.Fatal(err)
	}
	converted, err := yaml.YAMLToJSON(text)
	if err != nil {
		t.Fatalf("asyncapi.yaml: %v", err)
	}
	var document any
	if err := json.Unmarshal(converted, &document); err != nil {
		t.Fatalf("asyncapi.yaml: %v", err)
	}
	return document
}

// at returns what is at a path of names with slashes between them.
func at(t *testing.T, document any, path string) any {
	t.Helper()
	for name := range strings.SplitSeq(path, "/") {
		object, _ := document.(map[string]any)
		value, found := object[name]
		if !found {
			t.Fatalf("nothing at %q of %q", name, path)
		}
		document = value
	}
	return document
}

// names returns the sorted names of an object's member, itself an object.
func names(t *testing.T, object any, member string) []string {
	t.Helper()
	return slices.Sorted(maps.Keys(at(t, object, member).(map[string]any)))
}

// listed returns the sorted strings of an object's member.
func listed(t *testing.T, object any, member string) []string {
	t.Helper()
	var list []string
	for _, name := range at(t, object, member).([]any) {
		list = append(list, name.(string))
	}
	slices.Sort(list)
	return list
}

// references returns every $ref below a value.
func references(value any) []string {
	var found []string
	switch value := value.(type) {
	case map[string]any:
		for name, member := range value {
			if reference, ok := member.(string); ok && name == "$ref" {
				found = append(found, reference)
			}
			found = append(found, references(member)...)
		}
	case []any:
		for _, member := range value {
			found = append(found, references(member)...)
		}
	}
	return found
}
