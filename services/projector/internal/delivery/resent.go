package delivery

import (
	"context"

	"changerelay/pkg/contract"
	"changerelay/services/projector/internal/projection"
	"changerelay/services/projector/internal/session"
)

// Filling chooses what is stored in projection versions that resends fill, beside the
// current versions.
type Filling interface {
	// Filled is the name of the one that a resend fills; "" where it fills none.
	Filled(r contract.Resend) string
	// Has tells whether a projection, by its name, is one of them.
	Has(name string) bool
	// Begin begins to choose for events of one aggregate, in order. What is chosen is
	// stored before Begin is called again for the aggregate, or not at all.
	Begin() Choice
}

// Choice chooses for consecutive events of one aggregate.
type Choice interface {
	// Of are those writes of an event that are to be stored.
	Of(ctx context.Context, e *contract.Event, writes []projection.Write) ([]projection.Write, error)
}

// forUs tells whether a message is meant for this group, or fills a version.
func (h *hold) forUs(m *session.Message) bool {
	return Meant(contract.ResendOf(m.Message), h.config.Group, h.deps.Filling)
}

// Meant tells whether what belongs to a resend is for a group, or fills a version.
func Meant(of contract.Resend, group string, f Filling) bool {
	return of.For(group) || Fills(of, f) != ""
}

// Fills is the name of the version that a resend fills; "" where it fills none.
func Fills(of contract.Resend, f Filling) string {
	if f == nil {
		return ""
	}
	return f.Filled(of)
}

// begin begins to choose: all, where no version is filled.
func begin(f Filling) Choice {
	if f == nil {
		return all{}
	}
	return f.Begin()
}

type all struct{}

// Of implements Choice.
func (all) Of(_ context.Context, _ *contract.Event, writes []projection.Write) ([]projection.Write, error) {
	return writes, nil
}
