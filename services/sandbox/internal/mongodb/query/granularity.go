package query

import (
	"math"
	"slices"

	"go.mongodb.org/mongo-driver/v2/bson"

	"changerelay/services/sandbox/internal/mongodb/bsonkit"
	"changerelay/services/sandbox/internal/mongodb/mongoerr"
)

// granularity is a series of numbers at which the buckets of $bucketAuto end:
// these, and these times any power of ten. An empty one is the powers of two.
type granularity []float64

// granularities are those that the server knows. Renard's R40 is without 335
// there (https://en.wikipedia.org/wiki/Preferred_number).
var granularities = map[string]granularity{
	"POWERSOF2": {},
	"1-2-5":     {10, 20, 50},
	"R5":        {10, 16, 25, 40, 63},
	"R10":       {100, 125, 160, 200, 250, 315, 400, 500, 630, 800},
	"R20": {
		100, 112, 125, 140, 160, 180, 200, 224, 250, 280, 315, 355, 400, 450, 500, 560, 630, 710, 800, 900,
	},
	"R40": {
		100, 106, 112, 118, 125, 132, 140, 150, 160, 170, 180, 190, 200, 212, 224, 236, 250, 265, 280, 300,
		315, 355, 375, 400, 425, 450, 475, 500, 530, 560, 600, 630, 670, 710, 750, 800, 850, 900, 950,
	},
	"R80": {
		103, 109, 115, 122, 128, 136, 145, 155, 165, 175, 185, 195, 206, 218, 230, 243, 258, 272, 290, 307,
		325, 345, 365, 387, 412, 437, 462, 487, 515, 545, 575, 615, 650, 690, 730, 775, 825, 875, 925, 975,
	},
	"E6":   {10, 15, 22, 33, 47, 68},
	"E12":  {10, 12, 15, 18, 22, 27, 33, 39, 47, 56, 68, 82},
	"E24":  {10, 11, 12, 13, 15, 16, 18, 20, 22, 24, 27, 30, 33, 36, 39, 43, 47, 51, 56, 62, 68, 75, 82, 91},
	"E48":  electronic(48),
	"E96":  electronic(96),
	"E192": electronic(192),
}

// electronic is a series of IEC 60063 with three digits: the powers of the nth
// root of ten, rounded, with one exception.
func electronic(n int) granularity {
	series := make(granularity, n)
	for i := range series {
		series[i] = math.Round(100 * math.Pow(10, float64(i)/float64(n)))
		if n == 192 && i == 185 {
			series[i] = 920
		}
	}
	return series
}

// check refuses what cannot be rounded.
func (g granularity) check(v bson.RawValue) error {
	if !bsonkit.IsNumber(v.Type) {
		return mongoerr.New(40258, "$bucketAuto can specify a 'granularity' with numeric boundaries only, but found a value with type: %s",
			bsonkit.TypeName(v.Type))
	}
	if v.Type == bson.TypeDecimal128 {
		return mongoerr.New(mongoerr.NotImplemented, "the option 'granularity' of $bucketAuto is not supported for values of type decimal")
	}
	switch x := bsonkit.Float(v); {
	case math.IsNaN(x):
		return mongoerr.New(40259, "$bucketAuto can specify a 'granularity' with numeric boundaries only, but found a NaN")
	case x < 0:
		return mongoerr.New(40260, "$bucketAuto can specify a 'granularity' with non-negative numbers only, but found a negative number")
	}
	return nil
}

// up is the next number of the series. Zero and infinity stay what they are.
func (g granularity) up(v bson.RawValue) bson.RawValue {
	x := bsonkit.Float(v)
	if x == 0 || math.IsInf(x, 0) {
		return v
	}
	if len(g) == 0 {
		_, exponent := math.Frexp(x)
		return powerOfTwo(exponent)
	}
	scale := g.scale(x)
	for _, number := range g {
		if number*scale > x {
			return bsonkit.Double(number * scale)
		}
	}
	return bsonkit.Double(g[0] * (scale * 10))
}

// down is the number of the series before v.
func (g granularity) down(v bson.RawValue) bson.RawValue {
	x := bsonkit.Float(v)
	if x == 0 || math.IsInf(x, 0) {
		return v
	}
	if len(g) == 0 {
		fraction, exponent := math.Frexp(x)
		if fraction == 0.5 {
			exponent-- // x is one itself
		}
		return powerOfTwo(exponent - 1)
	}
	scale := g.scale(x)
	for _, number := range slices.Backward(g) {
		if number*scale < x {
			return bsonkit.Double(number * scale)
		}
	}
	return bsonkit.Double(g[len(g)-1] * (scale / 10))
}

// scale is the power of ten at which x is within the series, or behind its last
// number and before its first at the next one.
func (g granularity) scale(x float64) float64 {
	scale := 1.0
	for x >= g[0]*(scale*10) {
		scale *= 10
	}
	for x < g[0]*scale {
		scale /= 10
	}
	return scale
}

// powerOfTwo is a whole number where it can be one.
func powerOfTwo(exponent int) bson.RawValue {
	if exponent < 0 || exponent > 62 {
		return bsonkit.Double(math.Ldexp(1, exponent))
	}
	return bsonkit.Integer(1 << exponent)
}
