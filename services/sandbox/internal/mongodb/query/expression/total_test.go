package expression_test

import "testing"

func TestSums_AreThoseOfTheServer(t *testing.T) {
	t.Parallel()
	check(t, map[string]string{
		`{"$add":[0.1,0.2,0.3]}`:                                   `0.6D`,
		`{"$sum":[1e100,1,-1e100]}`:                                `1.0D`,
		`{"$add":[{"$numberDecimal":"1.1"},1.5]}`:                  `2.6M`,
		`{"$sum":[{"$numberDecimal":"1.1"},0.1]}`:                  `1.200000000000000005551115123125783M`,
		`{"$add":[2147483647,1]}`:                                  `2147483648L`,
		`{"$sum":["x",null]}`:                                      `0`,
		`{"$avg":[{"$numberDecimal":"1"},{"$numberDecimal":"2"}]}`: `1.5M`,
		`{"$multiply":[{"$numberDecimal":"2"},0.1]}`:               `0.200000000000000M`,
		`{"$toString":123456789012345678.0}`:                       `"1.234567890123457e+17"`,
	})
}
