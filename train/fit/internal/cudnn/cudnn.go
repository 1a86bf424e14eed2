// Package cudnn writes attention by cuDNN into programs for NVIDIA's GPUs.
package cudnn

import (
	"fmt"
	"math"

	"github.com/goccl/goccl/xla/hlo"
	"github.com/goccl/goccl/xla/nn"
)

// repeated is x [B,T,K,D] with heads repeated, to as many as queries have.
func repeated(x nn.V, heads int) nn.V {
	d := x.Dims()
	if d[2] == heads {
		return x
	}
	return x.Reshape(d[0], d[1], d[2], 1, d[3]).To(d[0], d[1], d[2], heads/d[2], d[3]).Reshape(d[0], d[1], heads, d[3])
}

// Attention is causal attention by cuDNN, forward and backward, as custom calls that XLA's plugin for
// CUDA knows, for [nn.Pass]. It is nil for what does not fit: cuDNN wants bfloat16, heads of 64 or 128
// elements, and no window, dropout or other scale. Where fewer heads have keys and values, these are repeated.
func Attention(q, k, v nn.V, a nn.Attention) nn.V {
	f, d := q.Func(), q.Dims()
	if size := d[3]; q.Type() != hlo.BF16 || k.Dims()[1] != d[1] || size != 64 && size != 128 || a.Full ||
		a.Window != 0 || a.Dropout != 0 ||
		a.Scale != 1/math.Sqrt(float64(size)) {
		return nil
	}
	k, v = repeated(k, d[2]), repeated(v, d[2])
	batch, t, heads, size := d[0], d[1], d[2], d[3]
	// layouts: as the dimensions are, and with heads outside of tokens
	row, heading := []int{3, 2, 1, 0}, []int{3, 1, 2, 0}
	x := hlo.Array{Type: hlo.BF16, Dims: []int{batch, heads, t, size}}
	stats, scratch := hlo.Array{Type: hlo.F32, Dims: []int{batch, heads, t}}, hlo.Array{Type: hlo.U8, Dims: []int{0}}
	c := cudnnConfig{batch, heads, t, size}
	out := f.Call("__cudnn$fmhaSoftmax", c.text(c.product("bmm1", 3, 3, 2, 2), c.product("bmm2", 3, 1, 1, 2)),
		[][]int{row, row, row}, [][]int{heading, {2, 1, 0}, {0}}, []hlo.Array{x, stats, scratch}, q, k, v)
	o := out[0].Perm(0, 2, 1, 3)
	return hlo.With(o, []nn.V{q, k, v}, func(do nn.V) []nn.V {
		g := f.Call("__cudnn$fmhaSoftmaxBackward",
			c.text(c.product("bmm1_grad_gemm1", 2, 1, 1, 2), c.product("bmm1_grad_gemm2", 3, 1, 1, 2),
				c.product("bmm2_grad_gemm1", 2, 1, 1, 2), c.product("bmm2_grad_gemm2", 3, 3, 2, 2)),
			[][]int{row, row, row, {2, 1, 0}, row, row}, [][]int{heading, heading, heading, {0}},
			[]hlo.Array{x, x, x, scratch}, q, k, v, out[1], do, o)
		return []nn.V{g[0].Perm(0, 2, 1, 3), g[1].Perm(0, 2, 1, 3), g[2].Perm(0, 2, 1, 3)}
	})
}

// cudnnConfig is the shape that the calls are configured for.
type cudnnConfig struct{ batch, heads, tokens, size int }

// text is the backend_config of the calls, whose products are parts.
func (c cudnnConfig) text(parts ...string) string {
	products := ""
	for _, p := range parts {
		products += p + ","
	}
	return fmt.Sprintf(`{"operation_queue_id":"0","cudnn_fmha_backend_config":{"algorithm":{"algo_id":"0","math_type":"TENSOR_OP_MATH",`+
		`"tuning_knobs":{"17":"1","24":"0"},"is_cudnn_frontend":true,"workspace_size":"0"},"fmha_scale":%g,"intermediate_tensor_shape":`+
		`{"element_type":"BF16","dimensions":["%d","%d","%d","%d"],"tuple_shapes":[],"layout":{"dim_level_types":[],"dim_unique":[],"dim_ordered":[],`+
		`"minor_to_major":["3","2","1","0"],"tiles":[],"element_size_in_bits":"0","memory_space":"0","index_primitive_type":"PRIMITIVE_TYPE_INVALID",`+
		`"pointer_primitive_type":"PRIMITIVE_TYPE_INVALID","dynamic_shape_metadata_prefix_bytes":"0"},"is_dynamic_dimension":[false,false,false,false]},`+
		`"is_flash_attention":true,"mask_type":"CAUSAL",%s"dropout_rate":0.0,"seed":42,"sliding_window_length":0,"max_seg_per_batch":1,"is_paged_attention":false}}`,
		1/math.Sqrt(float64(c.size)), c.batch, c.heads, c.tokens, c.tokens, products)
}

// product is the axes of one of the products: contracted of the left and right operand, and which the heads are.
func (c cudnnConfig) product(name string, left, right, leftHeads, rightHeads int) string {
	return fmt.Sprintf(`"%s_dot_dimension_numbers":{"lhs_contracting_dimensions":["%d"],"rhs_contracting_dimensions":["%d"],`+
		`"lhs_batch_dimensions":["0","%d"],"rhs_batch_dimensions":["0","%d"]}`, name, left, right, leftHeads, rightHeads)
}
