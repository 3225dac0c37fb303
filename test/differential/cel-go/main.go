// Command cel-go answers expressions with the CEL implementation that OpenFGA uses: one JSON object on each line,
// of the expression, the types of its parameters and their values, and one JSON object for each of them.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/google/cel-go/cel"
)

type question struct {
	Expression string                     `json:"expression"`
	Types      map[string]string          `json:"types"`
	Values     map[string]json.RawMessage `json:"values"`
}

var scalars = map[string]*cel.Type{
	"bool": cel.BoolType, "string": cel.StringType, "int": cel.IntType, "uint": cel.UintType, "double": cel.DoubleType,
	"duration": cel.DurationType, "timestamp": cel.TimestampType, "any": cel.DynType,
}

func celType(name string) *cel.Type {
	inner := name[strings.Index(name, "<")+1 : max(len(name)-1, 0)]
	switch {
	case strings.HasPrefix(name, "list<"):
		return cel.ListType(celType(inner))
	case strings.HasPrefix(name, "map<"):
		return cel.MapType(cel.StringType, celType(inner))
	}
	return scalars[name]
}

func read[T any](text json.RawMessage) (any, error) {
	var value T
	err := json.Unmarshal(text, &value)
	return value, err
}

// goValue takes an int and a uint as a string of digits; the other types are as a context brings them.
func goValue(name string, text json.RawMessage) (any, error) {
	switch name {
	case "int":
		return read[int64](json.RawMessage(strings.Trim(string(text), `"`)))
	case "uint":
		return read[uint64](json.RawMessage(strings.Trim(string(text), `"`)))
	case "double":
		return read[float64](text)
	case "list<int>":
		return read[[]int64](text)
	case "map<int>":
		return read[map[string]int64](text)
	case "duration", "timestamp":
		written, err := read[string](text)
		if err != nil || name == "timestamp" {
			at, wrong := time.Parse(time.RFC3339, fmt.Sprint(written))
			return at, wrong
		}
		return time.ParseDuration(fmt.Sprint(written))
	}
	return read[any](text)
}

func answer(asked question) map[string]any {
	options, values := []cel.EnvOption{}, map[string]any{}
	for name, written := range asked.Types {
		value, err := goValue(written, asked.Values[name])
		if err != nil {
			return map[string]any{"unfit": err.Error()}
		}
		options, values[name] = append(options, cel.Variable(name, celType(written))), value
	}
	env, err := cel.NewEnv(options...)
	if err != nil {
		return map[string]any{"refused": err.Error()}
	}
	compiled, issues := env.Compile(asked.Expression)
	if issues.Err() != nil {
		return map[string]any{"refused": issues.Err().Error()}
	}
	program, err := env.Program(compiled)
	if err != nil {
		return map[string]any{"refused": err.Error()}
	}
	result, _, err := program.Eval(values)
	if err != nil {
		return map[string]any{"error": err.Error()}
	}
	return map[string]any{"value": result.Value()}
}

func main() {
	lines, out := bufio.NewScanner(os.Stdin), json.NewEncoder(os.Stdout)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var asked question
		if err := json.Unmarshal(lines.Bytes(), &asked); err != nil {
			panic(err)
		}
		if err := out.Encode(answer(asked)); err != nil {
			panic(err)
		}
	}
}
