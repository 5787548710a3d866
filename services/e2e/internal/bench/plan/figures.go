package plan

import (
	"fmt"
	"math"
	"slices"
	"strconv"

	"changerelay/services/e2e/internal/check/report"
)

// figure is a number that is computed with, and where it is from.
type figure struct {
	value  float64
	source string
}

// Where figures are from: docs/performance.md, docs/configuration.md, docs/operations.md,
// and pages of the vendor.
const (
	quotas      = "https://learn.microsoft.com/azure/service-bus-messaging/service-bus-quotas"
	throttling  = "https://learn.microsoft.com/azure/service-bus-messaging/service-bus-throttling"
	performance = "https://learn.microsoft.com/azure/service-bus-messaging/service-bus-performance-improvements"
	premium     = "https://learn.microsoft.com/azure/service-bus-messaging/service-bus-premium-messaging"
)

var (
	sessionBatches = figure{64_086, "docs/performance.md, the publisher beside the bare clients: session batches 64,086/s"}
	mixedBatches   = figure{105_461, "docs/performance.md, the publisher beside the bare clients: mixed batches 105,461/s"}
	senders        = figure{256, "docs/configuration.md: SENDERS 256"}
	// inUse is what was sent at 5 ms over what 256 senders could, and inUseMixed what
	// mixed batches lost by 5 ms.
	inUse      = figure{35_533 / (256 / 0.005), "docs/performance.md, the publisher beside the bare clients: session batches, +5 ms round trip 35,533/s"}
	inUseMixed = figure{68_183.0 / 105_461, "docs/performance.md, the publisher beside the bare clients: mixed batches, +5 ms round trip 68,183/s"}

	hotSessions   = figure{30_720, "docs/performance.md, the projector beside the bare clients: 64 hot sessions, +5 ms round trip 30,720/s"}
	publisherTime = figure{18.7, "docs/performance.md, the whole path: CPU per event, publisher 18.7 µs"}
	projectorTime = figure{438, "docs/performance.md, number of aggregates: 1,000,000 aggregates 438 µs"}

	publisherLinks     = figure{1, "docs/performance.md, the publisher's profile: sends are spread over four links of one connection"}
	connectionSessions = figure{256, "docs/configuration.md: SERVICEBUS_CONNECTIONS, one for every 256 sessions"}
	busConnections     = figure{5000, quotas}
	mostSubscriptions  = figure{2000, quotas}

	standardCredits = figure{1000, throttling}
	sendCredits     = figure{1, throttling}
	ruleCredits     = figure{1, throttling}
	receiveCredits  = figure{1, throttling}
	standardMessage = figure{256 << 10, quotas}

	unitMessages = figure{2200, "docs/sandbox.md, worlds: 2200 messages a second at one messaging unit, the vendor's sample"}
	unitBytes    = figure{4 << 20, performance}
	mostUnits    = figure{16, premium}

	properties = figure{600, "estimate: ids, properties and annotations of a message, not measured"}
	logEntry   = figure{150, "estimate: an entry's own fields, not measured; compare db.getReplicationInfo() of your cluster"}

	topicBytes   = figure{5e9, quotas}
	premiumBytes = figure{80e9, quotas}
)

// measuredSessions is how many sessions at once the points were measured with.
const measuredSessions = 64

// point is how many sessions one projector took a second at a distance in milliseconds.
type point struct {
	at float64
	figure
}

// taking are the rows of two messages a session, halved to sessions.
var taking = []point{
	{0, figure{5108.0 / 2, "docs/performance.md, taking sessions: 2 messages a session 5,108/s"}},
	{1, figure{4019.0 / 2, "docs/performance.md, taking sessions: 2 messages a session, +1 ms round trip 4,019/s"}},
	{5, figure{2489.0 / 2, "docs/performance.md, taking sessions: 2 messages a session, +5 ms round trip 2,489/s"}},
	{40, figure{212.0 / 2, "docs/performance.md, taking sessions: 2 messages a session, +40 ms round trip 212/s"}},
}

func near() figure { return taking[0].figure }

func points() []figure {
	var all []figure
	for _, p := range taking {
		all = append(all, p.figure)
	}
	return all
}

// sources are where figures are from, each once.
func sources(figures ...figure) []string {
	var all []string
	for _, f := range figures {
		if !slices.Contains(all, f.source) {
			all = append(all, f.source)
		}
	}
	return all
}

func number(v float64) string {
	if v < 10 && v != math.Trunc(v) {
		return strconv.FormatFloat(v, 'f', 1, 64)
	}
	return report.Thousands(int64(math.Round(v)))
}

func share(v float64) string { return fmt.Sprintf("%.0f %%", v*100) }

func size(bytes float64) string {
	for _, unit := range []string{"B", "KB", "MB", "GB"} {
		if bytes < 1000 {
			return fmt.Sprintf("%.3g %s", bytes, unit)
		}
		bytes /= 1000
	}
	return fmt.Sprintf("%.3g TB", bytes)
}
