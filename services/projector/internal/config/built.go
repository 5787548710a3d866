package config

import (
	"context"

	"changerelay/services/projector/internal/projection"
	"changerelay/services/projector/internal/settings"
)

type builtKey struct{}

// BuiltWith is the context of a program that has projections in its code. What is loaded
// in it has them beside those that PROJECTIONS declares.
func BuiltWith(ctx context.Context, projections projection.Projections) context.Context {
	return context.WithValue(ctx, builtKey{}, projections)
}

func builtIn(ctx context.Context) projection.Projections {
	built, _ := ctx.Value(builtKey{}).(projection.Projections)
	return built
}

// Projections are those that a projector in this environment would have. It asks for no
// other setting.
func Projections(ctx context.Context) (projections projection.Projections, err error) {
	var cfg struct {
		Projections      string `envconfig:"PROJECTIONS" desc:"YAML files of projections, with commas between"`
		LatestCollection string `envconfig:"LATEST_COLLECTION" default:"latest" desc:"collection of the latest data, where there are no projections"`
	}
	err = settings.Load(&cfg, func() (problems []*settings.Problem) {
		var err error
		if projections, err = (&Config{Projections: cfg.Projections, LatestCollection: cfg.LatestCollection}).projections(ctx); err != nil {
			problems = append(problems, settings.Problemf("PROJECTIONS", "%s", err))
		}
		return problems
	})
	return projections, err
}
