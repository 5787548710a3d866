package broker

import "changerelay/services/sandbox/internal/servicebus/entity"

// Kinds of filters in a record.
const (
	filterTrue uint64 = iota
	filterFalse
	filterCorrelation
	filterSQL
)

func (w *encoder) rule(r entity.Rule) {
	w.string(r.Name)
	w.time(r.CreatedAt)
	switch f := r.Filter.(type) {
	case entity.FalseFilter:
		w.uint(filterFalse)
	case entity.CorrelationFilter:
		w.uint(filterCorrelation)
		for _, s := range f.Fields() {
			w.optional(*s)
		}
		w.properties(f.Properties)
	case entity.SQLFilter:
		w.uint(filterSQL)
		w.string(f.Expression)
		w.properties(f.Parameters)
	default:
		w.uint(filterTrue)
	}
}

func (r *decoder) rule() entity.Rule {
	rule := entity.Rule{Name: r.string(), CreatedAt: r.time()}
	switch r.uint() {
	case filterTrue:
		rule.Filter = entity.TrueFilter{}
	case filterFalse:
		rule.Filter = entity.FalseFilter{}
	case filterCorrelation:
		var f entity.CorrelationFilter
		for _, s := range f.Fields() {
			*s = r.optional()
		}
		f.Properties = r.properties()
		rule.Filter = f
	case filterSQL:
		rule.Filter = entity.SQLFilter{Expression: r.string(), Parameters: r.properties()}
	default:
		r.fail()
	}
	return rule
}
