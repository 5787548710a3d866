package projector

import (
	"fmt"
	"strings"

	"changerelay/services/projector/internal/command"
	"changerelay/services/projector/internal/projection"
)

// decisions is how often Try decides.
const decisions = 20

// Try decides about an event as a projector does, with all that is checked there, and
// returns what would be written, one document a line. It is for tests, and needs no
// server. The event is JSON as projector try reads it: type, data and, where they matter,
// id, aggregateId, version, time, operation, and for a projection with State the document
// as it is, state.
//
// It decides 20 times, and fails where that makes a difference.
func (p *Projection) Try(event string) (string, error) {
	made, err := p.coded()
	if err != nil {
		return "", err
	}
	samples, err := command.ReadSamples("the test", []byte(event))
	if err != nil {
		return "", err
	}
	first := ""
	for i := range decisions {
		var lines strings.Builder
		for _, sample := range samples {
			writes, err := sample.Decide(projection.Projections{made})
			if err != nil {
				return "", err
			}
			for j := range writes {
				if writes[j].Changes() {
					lines.WriteString(shown(&writes[j]) + "\n")
				}
			}
		}
		if i == 0 {
			first = lines.String()
		}
		if lines.String() != first {
			return "", fmt.Errorf("projection %q decides differently about the same event:\n%sand then\n%s", p.Name, first, lines.String())
		}
	}
	return first, nil
}
