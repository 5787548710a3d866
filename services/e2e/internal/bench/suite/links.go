package suite

import (
	"context"
	"errors"
	"fmt"
	"time"

	"changerelay/services/e2e/internal/bench/projectorbench"
	"changerelay/services/e2e/internal/bench/results"
	"changerelay/services/e2e/internal/check/report"
)

func links(s Scale) experiment {
	e := experiment{
		name: "links", title: "Slow and narrow links", world: true,
		shows: "Sessions wait, one or more, and come over one connection of a bandwidth and a round trip. Of the link: the size of all messages as they are on it, over the time from behind the handshakes until as many bytes had come, over the bandwidth. " +
			"Carried: all bytes that came over the connection, over the size of all messages.",
	}
	for i := range s.Repeats {
		for _, link := range s.Links {
			name := fmt.Sprintf("%d of %s × %s KB, %d MiB/s, %v", link.Sessions, report.Thousands(int64(link.Messages)), report.Thousands(int64(link.Bytes/1000)), link.MiB, link.RoundTrip)
			e.rounds = append(e.rounds, round{
				name: fmt.Sprintf("%s, repetition %d", name, i+1), usual: 6*time.Second + time.Duration(link.Sessions*link.Messages*link.Bytes/link.MiB)*time.Second>>20,
				measure: func(ctx context.Context, b *bench) ([]results.Point, error) {
					figures, err := b.link(ctx, link)
					return []results.Point{{Name: name, Figures: figures}}, err
				},
			})
		}
	}
	return e
}

func (b *bench) link(ctx context.Context, link LinkScale) (figures []results.Figure, err error) {
	s, err := b.open(ctx, projectorbench.ProjectorTopic())
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, s.Close(ctx)) }()
	world := based("loopback", map[string]any{"round_trip": link.RoundTrip.String()}, map[string]any{
		"round_trip": link.RoundTrip.String(), "bytes_per_second": link.MiB << 20,
	})
	r, err := projectorbench.DrainInWorld(ctx, s, projectorbench.Shape{Sessions: link.Sessions, Messages: link.Messages, Bytes: link.Bytes}, world, nil)
	if err != nil {
		return nil, err
	}
	return []results.Figure{
		ratio("of the link", float64(r.Messages)/r.Flowing.Seconds(), float64(link.MiB<<20)), ratio("carried", float64(r.Carried), float64(r.Messages)),
		perSecond("messages, with the start", r.PerSecond), results.One("memory, projector", results.Bytes, float64(r.Peak)),
	}, nil
}
