package broker

// Kinds of filters in a record.
const (
	filterTrue uint64 = iota
	filterFalse
	filterCorrelation
	filterSQL
)

func (w *encoder) rule(r Rule) {
	w.string(r.Name)
	w.time(r.CreatedAt)
	switch f := r.Filter.(type) {
	case FalseFilter:
		w.uint(filterFalse)
	case CorrelationFilter:
		w.uint(filterCorrelation)
		for _, s := range f.fields() {
			w.optional(*s)
		}
		w.properties(f.Properties)
	case SQLFilter:
		w.uint(filterSQL)
		w.string(f.Expression)
		w.properties(f.Parameters)
	default:
		w.uint(filterTrue)
	}
}

// fields are the filter's settings in the order of a record.
func (f *CorrelationFilter) fields() []**string {
	return []**string{
		&f.MessageID, &f.SessionID, &f.Subject, &f.To, &f.ReplyTo, &f.ReplyToSessionID, &f.CorrelationID, &f.ContentType,
	}
}

func (r *decoder) rule() Rule {
	rule := Rule{Name: r.string(), CreatedAt: r.time()}
	switch r.uint() {
	case filterTrue:
		rule.Filter = TrueFilter{}
	case filterFalse:
		rule.Filter = FalseFilter{}
	case filterCorrelation:
		var f CorrelationFilter
		for _, s := range f.fields() {
			*s = r.optional()
		}
		f.Properties = r.properties()
		rule.Filter = f
	case filterSQL:
		rule.Filter = SQLFilter{Expression: r.string(), Parameters: r.properties()}
	default:
		r.fail()
	}
	return rule
}
