package app

import "context"

// resumed is what a resume prints.
type resumed struct {
	// Accepted is how many halts do not count for HALT_LIMIT any more.
	Accepted int64 `json:"accepted"`
	DryRun   bool  `json:"dry_run,omitempty"`
}

// resume has the halts that there are count no more for HALT_LIMIT. The
// aggregates stay halted.
func (s *scope) resume(ctx context.Context) error {
	accept := s.store.AcceptHalts
	if s.flags.DryRun {
		accept = s.store.CountingHalts
	}
	n, err := accept(ctx)
	if err != nil {
		return err
	}
	return s.lines.Encode(resumed{n, s.flags.DryRun})
}
