package expression_test

import "testing"

// The values are those of the server's
// jstests/aggregation/expressions/{exp,ln,log,log10,pow}.js, and IEEE 754's for
// what is special.
func TestDecimals_HaveAllDigitsOfTheirFunctions(t *testing.T) {
	t.Parallel()
	for expression, want := range map[string]string{
		`{"$exp":{"$numberDecimal":"1"}}`:                                        "2.718281828459045235360287471352662",
		`{"$exp":{"$numberDecimal":"0"}}`:                                        "1",
		`{"$exp":{"$numberDecimal":"1E+6000"}}`:                                  "Infinity",
		`{"$exp":{"$numberDecimal":"NaN"}}`:                                      "NaN",
		`{"$ln":{"$numberDecimal":"2"}}`:                                         "0.6931471805599453094172321214581766",
		`{"$ln":{"$numberDecimal":"1"}}`:                                         "0",
		`{"$log10":{"$numberDecimal":"100"}}`:                                    "2",
		`{"$log10":{"$numberDecimal":"2"}}`:                                      "0.3010299956639811952137388947244930",
		`{"$log":[{"$numberDecimal":"1000"},10]}`:                                "3",
		`{"$log":[8,{"$numberDecimal":"3"}]}`:                                    "1.892789260714372311298581343028282",
		`{"$pow":[{"$numberDecimal":"2"},3]}`:                                    "8",
		`{"$pow":[2,{"$numberDecimal":"0.5"}]}`:                                  "1.414213562373095048801688724209698",
		`{"$pow":[{"$numberDecimal":"0"},{"$numberDecimal":"0"}]}`:               "1",
		`{"$pow":[{"$numberDecimal":"2"},{"$numberDecimal":"Infinity"}]}`:        "Infinity",
		`{"$pow":[{"$numberDecimal":"1.000000001"},{"$numberDecimal":"9E+30"}]}`: "Infinity",
		`{"$pow":[{"$numberDecimal":"-2"},{"$numberDecimal":"0.5"}]}`:            "NaN",
		`{"$ln":{"$numberDecimal":"1E-6000"}}`:                                   "-13815.51055796427410410794872810619",
		`{"$sqrt":{"$numberDecimal":"2"}}`:                                       "1.414213562373095048801688724209698",
	} {
		got, err := eval(t, expression)
		if d, ok := got.Decimal128OK(); err != nil || !ok || d.String() != want {
			t.Errorf("%s: got %s and %v, want %s", expression, got, err, want)
		}
	}
}
