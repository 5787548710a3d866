package projectorbench

import (
	"strings"

	"changerelay/services/e2e/internal/bench/stage"
)

// Shape is a backlog of sessions of the same length.
type Shape struct {
	Sessions, Messages int // messages in each session
	// Bytes is the size of a message's text; 0 is some 300.
	Bytes int
}

// text is the text of a message.
func (s Shape) text() string {
	if s.Bytes == 0 {
		return filler
	}
	return strings.Repeat("x", s.Bytes)
}

func (s Shape) total() int { return s.Sessions * s.Messages }

// The topic and its subscriptions, one for each way of emptying them.
const (
	topic                 = "backlog"
	rawSubscription       = "raw"
	projectorSubscription = "projector"
	plainSubscription     = "plain"
	sdkSubscription       = "sdk"
	bareSubscription      = "bare"
)

// Topic is what a stage needs for Compare.
func Topic() stage.Topic {
	return stage.Topic{Name: topic, Partitioned: true, Subscriptions: []string{rawSubscription, projectorSubscription, plainSubscription}}
}

// SessionsTopic is what a stage needs for Sessions.
func SessionsTopic() stage.Topic {
	return stage.Topic{Name: topic, Partitioned: true, Subscriptions: []string{rawSubscription, projectorSubscription, sdkSubscription, bareSubscription}}
}

// ProjectorTopic is what a stage needs for Drain.
func ProjectorTopic() stage.Topic {
	return stage.Topic{Name: topic, Partitioned: true, Subscriptions: []string{projectorSubscription}}
}
