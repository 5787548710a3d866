package record

import "changerelay/services/sandbox/internal/servicebus/entity"

// Kinds of filters in a record.
const (
	filterTrue uint64 = iota
	filterFalse
	filterCorrelation
	filterSQL
)

// Rule writes a rule.
func (w *Encoder) Rule(r entity.Rule) {
	w.Text(r.Name)
	w.Time(r.CreatedAt)
	switch f := r.Filter.(type) {
	case entity.FalseFilter:
		w.Uint(filterFalse)
	case entity.CorrelationFilter:
		w.Uint(filterCorrelation)
		for _, s := range f.Fields() {
			w.Optional(*s)
		}
		w.Properties(f.Properties)
	case entity.SQLFilter:
		w.Uint(filterSQL)
		w.Text(f.Expression)
		w.Properties(f.Parameters)
	default:
		w.Uint(filterTrue)
	}
}

// Rule reads a rule.
func (r *Decoder) Rule() entity.Rule {
	rule := entity.Rule{Name: r.Text(), CreatedAt: r.Time()}
	switch r.Uint() {
	case filterTrue:
		rule.Filter = entity.TrueFilter{}
	case filterFalse:
		rule.Filter = entity.FalseFilter{}
	case filterCorrelation:
		var f entity.CorrelationFilter
		for _, s := range f.Fields() {
			*s = r.Optional()
		}
		f.Properties = r.Properties()
		rule.Filter = f
	case filterSQL:
		rule.Filter = entity.SQLFilter{Expression: r.Text(), Parameters: r.Properties()}
	default:
		r.Fail()
	}
	return rule
}
