package optim

// ClipEps is added to a norm by which gradients are clipped, as torch.nn.utils.clip_grad_norm_ does.
const ClipEps = 1e-6

// ClipFactor is what gradients with that norm are multiplied by so that it is most at most: most /
// (norm+ClipEps), or 1 where that is more. All packages of train clip by it.
// The norm is converted, so that a product that is passed is not fused with the addition.
func ClipFactor(norm, most float64) float64 { return min(1, most/(float64(norm)+ClipEps)) }
