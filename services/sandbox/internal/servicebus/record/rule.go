package record

import (
	"math"

	"changerelay/services/sandbox/internal/servicebus/entity"
)

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
		w.ruleValues(f.Properties)
	case entity.SQLFilter:
		w.Uint(filterSQL)
		w.Text(f.Expression)
		w.ruleValues(f.Parameters)
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
		f.Properties = r.ruleValues()
		rule.Filter = f
	case filterSQL:
		rule.Filter = entity.SQLFilter{Expression: r.Text(), Parameters: r.ruleValues()}
	default:
		r.Fail()
	}
	return rule
}

// ruleValues writes the values of a rule. In older records tagInt64 stands for an
// int as well, so a long that would fit into an int has a tag of its own.
func (w *Encoder) ruleValues(m map[string]any) {
	w.Uint(uint64(len(m)))
	for k, v := range m {
		w.Text(k)
		if n, ok := v.(int64); ok && fitsInt(n) {
			w.Raw([]byte{tagLong})
			w.Int(n)
			continue
		}
		w.Value(v)
	}
}

func fitsInt(n int64) bool { return math.MinInt32 <= n && n <= math.MaxInt32 }

// ruleValues reads the values of a rule. What is not known to be a long is an int
// if it fits into one: clients read that, and filters compare both alike.
func (r *Decoder) ruleValues() map[string]any {
	n := r.Uint()
	if n == 0 || r.Err != nil {
		return nil
	}
	m := map[string]any{}
	for range n {
		k := r.Text()
		if len(r.Buf) > 0 && r.Buf[0] == tagLong {
			r.Byte()
			m[k] = r.Int()
		} else {
			m[k] = r.Value()
			if n, ok := m[k].(int64); ok && fitsInt(n) {
				m[k] = int32(n)
			}
		}
		if r.Err != nil {
			return nil
		}
	}
	return m
}
