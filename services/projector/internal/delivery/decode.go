package delivery

import (
	"context"
	"strings"
	"time"

	"changerelay/pkg/contract"
	"changerelay/services/projector/internal/projection"
	"changerelay/services/projector/internal/session"
)

// Reasons of dead-lettered messages. ReasonForeign says that it is no event.
const (
	ReasonForeign = "ForeignMessage"
	reasonInvalid = "InvalidMessage"
	reasonTooBig  = "NotParkable"
)

// decoder is the stage that reads messages as far as they can be read. It stops none:
// in which order they stand with what is halted or missing is for later stages.
type decoder struct {
	filling Filling
	tracer  Tracer
}

func (d *decoder) take(_ context.Context, b *batch) {
	began := time.Now()
	for i := range b.items {
		it := &b.items[i]
		it.decode(it.message.Message)
		if it.event != nil {
			it.fills = Fills(contract.ResendOf(it.message.Message), d.filling)
		}
		if it.change != nil {
			it.change.Fills = it.fills
		}
	}
	b.trace(d.tracer, began)
}

// decode decodes a message as far as it can be.
func (it *item) decode(m contract.Message) {
	change, err := decode(m)
	if err == nil {
		change.Event.Data = nil
		it.change, it.event = change, &change.Event
	} else if event, placed := contract.Place(m); placed {
		it.event, it.problem = &event, "the message cannot be read: "+oneLine(err)
	} else {
		it.refusal = refusal(m, err)
	}
}

func decode(m contract.Message) (*projection.Change, error) {
	event, err := contract.Decode(m, contract.DecodeOptions{MaxDataBytes: maxDataBytes})
	if err != nil {
		return nil, err
	}
	return projection.Read(event)
}

// maxDataBytes bounds an event's data. A read document cannot be larger, and
// neither can the change it comes from.
const maxDataBytes = 16 << 20

func oneLine(err error) string { return strings.ReplaceAll(err.Error(), "\n", "; ") }

// refusal is the verdict over a message that belongs to no aggregate.
func refusal(m contract.Message, err error) session.Verdict {
	v := session.Verdict{
		DeadLetter:  true,
		Reason:      ReasonForeign,
		Description: oneLine(err),
	}
	for name := range m.Properties {
		if strings.HasPrefix(name, "cloudEvents") {
			v.Reason = reasonInvalid
		}
	}
	return v
}
