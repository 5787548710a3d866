package contract_test

import (
	"testing"

	"changerelay/pkg/contract"
)

// inserted is the identity of the insert of version 42 of one document.
func inserted() contract.Identity {
	return contract.Identity{
		Database: "shop", Collection: "events", DocumentKey: orderKey,
		Operation: contract.Insert, Version: contract.VersionOf(42),
		Position: contract.StreamPosition(0x6921d1e1, 1, orderToken),
	}
}

// unversioned is the same change of a source that numbers nothing.
func unversioned() contract.Identity {
	i := inserted()
	i.Version = contract.Version{}
	return i
}

// A changed id makes a broker take changes for new that it has, and makes two
// releases that run side by side send everything twice.
func TestID_MessageIDsNeverChange(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name     string
		identity contract.Identity
		want     string
	}{
		{"with a version", inserted(), "jV8mVXrNvOmcRivt3LfmaRA3A0dcs6gbB50rXhlCAS0"},
		{"without one", unversioned(), "Fqcmm_prhinVIYUPqs-lih5MXI7xiavtEsh91_u2VbA"},
		{"of nothing at all", contract.Identity{}, "LDTOHfI7g4xavyp_ZDfMo9MGftUJ_yXxHfaxG1grUes"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if got := tt.identity.MessageID(); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

func TestID_TheSameChangeHasTheSameID(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name string
		edit func(*contract.Identity)
	}{
		{"read twice", func(*contract.Identity) {}},
		{"read from a snapshot", func(i *contract.Identity) {
			i.Operation, i.Position = contract.Snapshot, contract.SnapshotPosition(0x6921d1e1, 9, 12)
		}},
		{"read at another position of another stream", func(i *contract.Identity) {
			i.Position = contract.StreamPosition(0x6921d1e9, 9, "82FF")
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			again := inserted()
			tt.edit(&again)
			if got, want := again.MessageID(), inserted().MessageID(); got != want {
				t.Errorf("got %q, want %q", got, want)
			}
		})
	}
}

func TestID_DifferentChangesHaveDifferentIDs(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name string
		of   func() contract.Identity
		edit func(*contract.Identity)
	}{
		{"another database", inserted, func(i *contract.Identity) { i.Database = "shop2" }},
		{"another collection", inserted, func(i *contract.Identity) { i.Collection = "events2" }},
		{"a name that moves from database to collection", inserted, func(i *contract.Identity) { i.Database, i.Collection = "shope", "vents" }},
		{"another document", inserted, func(i *contract.Identity) { i.DocumentKey = orderKey[:len(orderKey)-1] }},
		{"another operation", inserted, func(i *contract.Identity) { i.Operation = contract.Delete }},
		{"another version", inserted, func(i *contract.Identity) { i.Version = contract.VersionOf(43) }},
		{"a second change of the document in one transaction, at one cluster time", unversioned, func(i *contract.Identity) {
			i.Position = contract.StreamPosition(0x6921d1e1, 1, "82"+orderToken[2:26]+"2B02"+orderToken[28:])
		}},
		{"a snapshot of a source without versions", unversioned, func(i *contract.Identity) { i.Operation = contract.Snapshot }},
		{"version 0 and none", inserted, func(i *contract.Identity) { i.Version.Known = false }},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			other := tt.of()
			tt.edit(&other)
			if got := other.MessageID(); got == tt.of().MessageID() {
				t.Errorf("both have the id %q", got)
			}
		})
	}
}

func TestID_AnIDIsShortWhateverItIsMadeOf(t *testing.T) {
	t.Parallel()
	i := inserted()
	i.DocumentKey = make([]byte, 1<<20)
	if got := i.MessageID(); len(got) != 43 {
		t.Errorf("got %q of %d characters, want 43", got, len(got))
	}
}
